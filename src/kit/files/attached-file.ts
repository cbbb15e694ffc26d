import { Failure, invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { FILES_MAX, type ValueRule } from '../values/value-type.ts'
import { isImage } from './content-type.ts'

/** Beginning of the keys of all attachments in the file store. */
export const ATTACHMENTS = 'attachments/'

const FILES_OF_ONE_MAX = 200

/** An attached file as a task or record keeps it, in an internal field of its own. */
export interface AttachedFile {
  _id: string
  name: string
  contentType: string
  /** Bytes. */
  size: number
  createdAt: string
  /** Storage key of its bytes, below the key of its holder. */
  upload: string
}

/** Owner of files: its noun, and which one. */
export interface FileHolder {
  noun: string
  organizationId: string
  id: string
}

/** The 256 parts into which the store is divided, so that a sweep can take a part at a time. */
export const SHARDS: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

/** The prefix of the keys of all its attachments. The end of a UUID is random. */
export const keysOf = ({ noun, organizationId, id }: FileHolder): string =>
  `${ATTACHMENTS}${id.slice(-2)}/${organizationId}/${noun}-${id}/`

export const uploadKey = (holder: FileHolder, upload: string): string => keysOf(holder) + upload

/** Owner of a file, by its key; undefined for a key of no attachment. */
export const holderOf = (key: string): (FileHolder & { upload: string }) | undefined => {
  const [, , organizationId, holder = '', upload] = key.split('/')
  const dash = holder.indexOf('-')
  return upload === undefined || dash < 0
    ? undefined
    : { noun: holder.slice(0, dash), organizationId, id: holder.slice(dash + 1), upload }
}

export const filesOf = (values: { files?: unknown }): AttachedFile[] => (values.files ?? []) as AttachedFile[]

/** Member of the row by whose index a file is found. */
export const fileIdsOf = (values: JsonObject): JsonObject =>
  values.files === undefined ? {} : { fileIds: filesOf(values).map(({ _id }) => _id) }

/** A row for display: attachments are only shown by the ids in its values. */
export const withoutFiles = <R extends object>(row: R): R => {
  if (!('files' in row)) return row
  const { files: _files, fileIds: _fileIds, ...shown } = row as R & { files?: unknown; fileIds?: unknown }
  return shown as unknown as R
}

/** The internal field without files that no value names any more; the field is left out where none is left. */
export const withNamedFiles = (values: JsonObject, named: Iterable<unknown>): JsonObject => {
  const ids = new Set(named)
  const { files: _files, ...others } = values
  const files = filesOf(values).filter(({ _id }) => ids.has(_id))
  return files.length === 0 ? others : { ...others, files: files as unknown as JsonObject[] }
}

/** Values that keep no file, nor name one in a list. */
export const withoutAttached = (values: JsonObject): JsonObject => {
  if (values.files === undefined) return values
  const { files: _files, ...others } = values
  const ids = new Set<unknown>(filesOf(values).map(({ _id }) => _id))
  const bare = (value: Json): Json => {
    if (Array.isArray(value)) return value.filter((one) => !ids.has(one))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, bare(one)]))
  }
  return bare(others) as JsonObject
}

/** @throws Failure invalid where there are too many already, unsupported_type for a file that is no picture */
export const assertFits = (
  { type, filesMax = FILES_MAX }: ValueRule,
  count: number,
  file: AttachedFile,
  path: string,
): void => {
  if (type !== 'file' && !isImage(file.contentType))
    throw new Failure('unsupported_type', { message: `${path} takes pictures only; this is ${file.contentType}.` })
  if (count >= filesMax) throw invalid(path, `must be at most ${filesMax} files`)
}

export const assertRoom = (files: readonly AttachedFile[]): void => {
  if (files.length >= FILES_OF_ONE_MAX) throw invalid('/file', `is one of more than ${FILES_OF_ONE_MAX} files`)
}
