import { isObject, type Json, type JsonObject } from '../../kernel/json.ts'

/** A file that the values of a record name. */
interface StoredFile {
  /** Storage key of its bytes. */
  key: string
  /** Bytes. */
  size: number
}

/** Files attached in `files`, the scripts and the `icon` of an add-on, and the logo of an organization. */
export const storedFiles = ({ files, icon, logo, logoBytes }: JsonObject): StoredFile[] => {
  const named = [...(Array.isArray(files) ? files : []), icon].filter(isFile)
  const stored = named.map(({ upload, path, size }) => ({ key: String(upload ?? path), size }))
  return typeof logo === 'string' && typeof logoBytes === 'number'
    ? [...stored, { key: logo, size: logoBytes }]
    : stored
}

/** Bytes of the files that the values name now and did not name before. */
export const newBytes = (values: JsonObject, before: JsonObject = {}): number => {
  const known = new Set(storedFiles(before).map(({ key }) => key))
  return bytesOf(storedFiles(values).filter(({ key }) => !known.has(key)))
}

export const bytesOf = (files: readonly StoredFile[]): number => files.reduce((sum, { size }) => sum + size, 0)

const isFile = (value: Json | undefined): value is JsonObject & { size: number } =>
  isObject(value) && typeof value.size === 'number'
