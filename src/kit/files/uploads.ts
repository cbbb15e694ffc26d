import { createHash, randomUUID } from 'node:crypto'
import type { FileStore } from '../../engines/file-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { readStreamedForm } from '../http/streamed-form.ts'
import type { Received, RouteRequest } from '../http/route.ts'
import type { Row } from '../../kernel/table.ts'
import { normalized } from '../../kernel/text.ts'
import { type AttachedFile, type FileHolder, filesOf, uploadKey } from './attached-file.ts'
import { contentTypeOf, HEAD_BYTES } from './content-type.ts'

/** A file whose bytes are stored and that no record names yet. */
export interface Upload {
  name: string
  /** Determined by its bytes. */
  contentType: string
  size: number
  /** Storage key of its bytes, below the key of its holder. */
  upload: string
  fields: { [name: string]: string }
}

/** Fields of a form beside its file. */
export interface FormFields {
  required: readonly string[]
  optional?: readonly string[]
}

export interface UploadOptions {
  files: FileStore
  bytesMax: number
}

/** The form around the file. */
const FORM_BYTES_MAX = 64 * 1024
/** Each holds some pieces in memory, up to 5 MiB for an S3 store. */
const AT_ONCE_MAX = 64
/** Uploads of one organization at a time: its slow clients leave room for other organizations. */
const OWN_AT_ONCE_MAX = 16
const NAME_CHARACTERS_MAX = 255

/** Files that come with requests: stored as they arrive, and removed again when the request fails. */
export class Uploads {
  readonly bytesMax: number
  /** Largest size of the whole form. */
  readonly bodyBytesMax: number
  private readonly files: FileStore
  /** By organization. */
  private readonly running = new Map<string, number>()

  constructor({ files, bytesMax }: UploadOptions) {
    this.files = files
    this.bytesMax = bytesMax
    this.bodyBytesMax = bytesMax + FORM_BYTES_MAX
  }

  /**
   * Stores the `file` of a form; the body is an `Upload`.
   * @param shape the fields that the form has beside it
   * @throws Failure invalid, too_large, overloaded while too many others are under way
   */
  async receive(
    { headers, body }: Pick<RouteRequest<object, AsyncIterable<Uint8Array>>, 'headers' | 'body'>,
    holder: FileHolder,
    { required, optional = [] }: FormFields,
  ): Promise<Received & { body: Upload }> {
    const { organizationId } = holder
    this.begin(organizationId)
    try {
      const shape = { fields: [...required, ...optional], file: 'file' }
      const { fields, stored } = await readStreamedForm(headers.get('content-type'), body, shape, {
        store: (name, source) => this.store(holder, name, source),
        discard: ({ upload }) => this.remove(holder, upload),
      })
      const discard = async (): Promise<void> => {
        if (stored !== undefined) await this.remove(holder, stored.upload)
      }
      const missing = stored === undefined ? 'file' : required.find((name) => fields[name] === undefined)
      if (stored === undefined || missing !== undefined) {
        await discard()
        throw invalid(`/${missing}`, 'is required')
      }
      const { sha256, ...upload } = stored
      return { body: { ...upload, fields }, fingerprint: JSON.stringify([upload.name, fields, sha256]), discard }
    } finally {
      this.end(organizationId)
    }
  }

  private begin(organizationId: string): void {
    const own = this.running.get(organizationId) ?? 0
    const all = [...this.running.values()].reduce((sum, count) => sum + count, 0)
    if (own >= OWN_AT_ONCE_MAX || all >= AT_ONCE_MAX) throw new Failure('overloaded', { retryAfterSeconds: 1 })
    this.running.set(organizationId, own + 1)
  }

  private end(organizationId: string): void {
    const own = this.running.get(organizationId) ?? 1
    if (own > 1) this.running.set(organizationId, own - 1)
    else this.running.delete(organizationId)
  }

  /** The file as its holder's row has it: an earlier try may have attached it; then these bytes are removed. */
  async keptBy(holder: FileHolder, row: Row, file: AttachedFile): Promise<AttachedFile> {
    const kept = filesOf(row).find(({ _id }) => _id === file._id) ?? file
    if (kept.upload !== file.upload) await this.remove(holder, file.upload)
    return kept
  }

  /** Removes the bytes, now or when unnamed files are swept. */
  remove(holder: FileHolder, upload: string): Promise<void> {
    return this.files.delete(uploadKey(holder, upload)).catch(() => undefined)
  }

  private async store(
    holder: FileHolder,
    name: string,
    source: AsyncIterable<Uint8Array>,
  ): Promise<Omit<Upload, 'fields'> & { sha256: string }> {
    const upload = randomUUID()
    const hash = createHash('sha256')
    const head = Buffer.alloc(HEAD_BYTES)
    let seen = 0
    async function* looked(): AsyncGenerator<Uint8Array> {
      for await (const piece of source) {
        hash.update(piece)
        if (seen < HEAD_BYTES) head.set(piece.subarray(0, HEAD_BYTES - seen), seen)
        seen += piece.byteLength
        yield piece
      }
      if (seen === 0) throw invalid('/file', 'must not be empty')
    }
    const size = await this.files.put(uploadKey(holder, upload), looked(), this.bytesMax)
    const contentType = await contentTypeOf(head.subarray(0, Math.min(seen, HEAD_BYTES)))
    return { name: fileName(name), contentType, size, upload, sha256: hash.digest('hex') }
  }
}

/** Escapes that browsers write in names. */
const ESCAPED: { [written: string]: string } = { '%22': '"', '%0D': '', '%0A': '' }

/** A name that can be shown: without control characters. It is never a path. */
const fileName = (name: string): string => {
  const clean = normalized(name.replace(/^.*[/\\]/s, '').replace(/%(22|0D|0A)/g, (one) => ESCAPED[one]))
    .replace(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/gu, '')
    .trim()
  return clean === '' ? 'file' : [...clean].slice(0, NAME_CHARACTERS_MAX).join('')
}
