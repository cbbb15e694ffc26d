import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import { fileTooLarge } from '../../engines/file-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'

export interface UploadedFile {
  /** Name of the form's field. */
  field: string
  /** As the client named it, without a path. */
  name: string
  /** As the client declares it; the bytes tell the real type. */
  contentType: string
  bytes: Buffer
}

export interface MultipartBody {
  fields: { [name: string]: string }
  files: UploadedFile[]
}

export interface MultipartLimits {
  /** Names of fields that may be sent. */
  fields: readonly string[]
  /** Names of fields that hold files, each with how many of them at most. */
  files: { readonly [field: string]: number }
  fileBytesMax: number
}

const FIELD_BYTES_MAX = 64 * 1024

/**
 * The parts of a multipart/form-data body (RFC 7578).
 * @throws Failure invalid with the name of the field, too_large for a file over the limit
 */
export const parseMultipart = (
  contentType: string | undefined,
  body: Uint8Array,
  limits: MultipartLimits,
): Promise<MultipartBody> =>
  new Promise((resolve, reject) => {
    const parsed: MultipartBody = { fields: {}, files: [] }
    const form = openForm(contentType, limits)
    form.on('field', (name, value, isNameCut, isCut) => {
      if (isNameCut || !limits.fields.includes(name)) return reject(strangeField(name, limits))
      if (isCut) return reject(invalid(`/${name}`, `must not have more than ${FIELD_BYTES_MAX} bytes`))
      if (Object.hasOwn(parsed.fields, name)) return reject(invalid(`/${name}`, 'must be sent once'))
      parsed.fields[name] = value
    })
    form.on('file', (field, stream, name, _encoding, type) => {
      const pieces: Buffer[] = []
      if (!Object.hasOwn(limits.files, field)) reject(invalid(`/${field}`, 'is not a known file'))
      else if (parsed.files.filter((file) => file.field === field).length >= limits.files[field])
        reject(invalid(`/${field}`, `must not have more than ${limits.files[field]} files`))
      const file: UploadedFile = { field, name: name ?? '', contentType: type, bytes: Buffer.alloc(0) }
      parsed.files.push(file)
      stream.on('data', (piece: Buffer) => void pieces.push(piece))
      stream.on('limit', () => reject(fileTooLarge(limits.fileBytesMax)))
      stream.on('error', () => reject(brokenForm()))
      stream.on('end', () => {
        file.bytes = Buffer.concat(pieces)
      })
    })
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
      form.on(limit, () => reject(new Failure('invalid', { message: 'The form has too many parts.' })))
    form.on('error', () => reject(brokenForm()))
    form.on('finish', () => resolve(parsed))
    form.end(body)
  })

/** The failure of a text that no field takes; a file whose part has no filename comes as one. */
export const strangeField = (name: string | undefined, { files }: Pick<MultipartLimits, 'files'>): Failure => {
  if (name === undefined) return brokenForm()
  return invalid(
    `/${name}`,
    Object.hasOwn(files, name) ? 'must be a file: its part needs a filename' : 'is not a known field',
  )
}

/** @throws Failure invalid for a content type without a boundary: there is nothing to read. */
export const openForm = (contentType: string | undefined, { fields, files, fileBytesMax }: MultipartLimits): Busboy => {
  const filesMax = Object.values(files).reduce((sum, max) => sum + max, 0)
  try {
    return new Busboy({
      headers: { 'content-type': contentType } as BusboyHeaders,
      limits: {
        fieldSize: FIELD_BYTES_MAX,
        fileSize: fileBytesMax,
        // One more each, so that the first excess one is named.
        fields: fields.length + 1,
        files: filesMax + 1,
        parts: fields.length + filesMax + 2,
        headerPairs: 20,
      },
    })
  } catch {
    throw brokenForm()
  }
}

export const brokenForm = (): Failure =>
  new Failure('invalid', { message: 'The body is no whole multipart/form-data form.' })

/** The schema of such a form, for the documentation. */
export const formSchema = (
  properties: { [name: string]: object },
  required: readonly string[],
): { [keyword: string]: unknown } => ({ type: 'object', properties, required, additionalProperties: false })

export const BINARY = { type: 'string', format: 'binary' }
