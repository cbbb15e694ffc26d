import { createHash, randomUUID } from 'node:crypto'
import type { FileStore } from '../../engines/file-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { normalized } from '../../kernel/text.ts'
import { readStreamedForm } from '../http/streamed-form.ts'
import type { Received, RouteRequest } from '../http/route.ts'

/** The stored file of a form, with the fields beside it. */
export interface FormFile {
  name: string
  size: number
  /** In the file store. */
  key: string
  fields: { [name: string]: string }
}

export interface FormFileShape {
  /** Beginning of its key. */
  prefix: string
  bytesMax: number
  fields: readonly string[]
}

const NAME_CHARS_MAX = 255

/** Stores the `file` of a form as it comes. @throws Failure invalid, too_large */
export const receiveFile = async (
  files: Pick<FileStore, 'put' | 'delete'>,
  { headers, body }: Pick<RouteRequest<object, AsyncIterable<Uint8Array>>, 'headers' | 'body'>,
  { prefix, bytesMax, fields: names }: FormFileShape,
): Promise<Received & { body: FormFile }> => {
  const key = prefix + randomUUID()
  const remove = (): Promise<void> => files.delete(key).catch(() => undefined)
  const hash = createHash('sha256')
  const hashed = async function* (source: AsyncIterable<Uint8Array>) {
    for await (const piece of source) {
      hash.update(piece)
      yield piece
    }
  }
  const { fields, stored } = await readStreamedForm(
    headers.get('content-type'),
    body,
    { fields: names, file: 'file' },
    {
      store: async (name, source) => ({ name: shortName(name), size: await files.put(key, hashed(source), bytesMax) }),
      discard: remove,
    },
  )
  if (stored === undefined) throw invalid('/file', 'is required')
  if (stored.size === 0) {
    await remove()
    throw new Failure('invalid', {
      message: '/file must not be empty',
      errors: [{ path: '/file', message: 'must not be empty' }],
    })
  }
  const fingerprint = JSON.stringify([stored.name, fields, hash.digest('hex')])
  return { body: { ...stored, key, fields }, fingerprint, discard: remove }
}

const shortName = (name: string): string => {
  const clean = normalized(name.replace(/^.*[/\\]/s, ''))
    .replace(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/gu, '')
    .trim()
  return clean === '' ? 'file' : [...clean].slice(0, NAME_CHARS_MAX).join('')
}
