import { createHash } from 'node:crypto'
import type { FileStore } from '../../engines/file-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { IMAGE_TYPES, imageEnding } from '../../kit/http/image.ts'
import { parseMultipart, type UploadedFile } from '../../kit/http/multipart.ts'
import type { AddonFile } from './addon.ts'
import { addonKey, addonPath, hashedName } from './paths.ts'
import { harmlessSvg, looksLikeSvg } from './svg.ts'

const FILES_MAX = 20
const FILE_BYTES_MAX = 2 * 1024 * 1024
const ICON_BYTES_MAX = 256 * 1024
export const UPLOAD_BYTES_MAX = 12 * 1024 * 1024

const SCRIPT_TYPE = 'text/javascript; charset=utf-8'
const SCRIPT_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\.m?js$/
const SVG_TYPE = 'image/svg+xml'

/** Members of an add-on form; undefined if the form leaves them out. */
export interface AddonUpload {
  _id?: string
  name?: string
  files?: UploadedFile[]
  icon?: UploadedFile
}

/** @throws Failure invalid with the path, too_large */
export const readUpload = async (contentType: string | undefined, body: Uint8Array): Promise<AddonUpload> => {
  const { fields, files } = await parseMultipart(contentType, body, {
    fields: ['_id', 'name'],
    // Many clients name a list `files[]`.
    files: { files: FILES_MAX, 'files[]': FILES_MAX, icon: 1 },
    fileBytesMax: FILE_BYTES_MAX,
  })
  const scripts = files.filter(({ field }) => field !== 'icon')
  if (scripts.length > FILES_MAX) throw invalid('/files', `must not have more than ${FILES_MAX} files`)
  const icon = files.find(({ field }) => field === 'icon')
  return { ...fields, ...(scripts.length > 0 && { files: scripts }), ...(icon !== undefined && { icon }) }
}

/**
 * Stores scripts under names that contain their hash, before any event names them.
 * @throws Failure invalid for a repeated or malformed name, unsupported_type for content that is no text
 */
export const storeScripts = async (
  files: FileStore,
  addonId: string,
  scripts: readonly UploadedFile[],
): Promise<AddonFile[]> => {
  const named = scripts.map(({ name, bytes }, i) => {
    const path = `/files/${i}`
    if (!SCRIPT_NAME.test(name))
      throw invalid(path, 'must be named as a script: letters, digits, . _ - and .js or .mjs')
    if (scripts.findIndex((other) => other.name === name) < i) throw invalid(path, `has the name ${name} a second time`)
    assertText(bytes, path)
    return { name, bytes }
  })
  const stored: AddonFile[] = []
  for (const { name, bytes } of named) stored.push(await store(files, addonId, name, SCRIPT_TYPE, bytes))
  return stored
}

/** @throws Failure unsupported_type, too_large */
export const storeIcon = async (files: FileStore, addonId: string, { bytes }: UploadedFile): Promise<AddonFile> => {
  if (bytes.byteLength > ICON_BYTES_MAX)
    throw new Failure('too_large', { message: `The icon is larger than ${ICON_BYTES_MAX} bytes.` })
  if (looksLikeSvg(bytes)) return store(files, addonId, 'icon.svg', SVG_TYPE, await harmlessSvg(bytes))
  const ending = await imageEnding(bytes)
  return store(files, addonId, `icon.${ending}`, IMAGE_TYPES[ending], bytes)
}

const store = async (
  files: FileStore,
  addonId: string,
  name: string,
  contentType: string,
  bytes: Buffer,
): Promise<AddonFile> => {
  const hashed = hashedName(createHash('sha256').update(bytes).digest('hex').slice(0, 32), name)
  await files.put(addonKey(addonId, hashed), once(bytes), FILE_BYTES_MAX)
  const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`
  return { name, contentType, size: bytes.byteLength, integrity, path: addonPath(addonId, hashed) }
}

const assertText = (bytes: Uint8Array, path: string): void => {
  try {
    if (!new TextDecoder('utf-8', { fatal: true }).decode(bytes).includes('\0')) return
  } catch {
    // Not UTF-8: refused below, like a zero byte.
  }
  throw new Failure('unsupported_type', { message: `${path} is no script in UTF-8.` })
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
