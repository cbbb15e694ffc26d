import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { access, constants, link, open, readFile, realpath, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from '../../engines/make-folder.ts'
import { syncPath } from '../../engines/sync-path.ts'

/** Content of keys.json. Keys are base64url, token keys PEM (PKCS #8). */
export interface KeyringFile {
  format: 'waymark-keyring.v1'
  /** Root of all keyed hashes; never changes, for hashes are part of stream names. */
  hashKey: string
  /** Newest first; the first one encrypts, all decrypt. */
  encryptionKeys: { id: string; key: string }[]
  /** Newest first; the first one signs, all verify. */
  tokenKeys: TokenKeyEntry[]
}

export interface TokenKeyEntry {
  kid: string
  privateKey: string
  /** Time at which a key that no longer signs ceases to verify, ms since the epoch. */
  verifiesUntil?: number
}

export const KEY_BYTES = 32

/** The keyring of that file, which is created if missing. @throws Error when the file is no keyring. */
export const readOrMakeKeyring = async (path: string): Promise<KeyringFile> =>
  (await readIfThere(path)) ?? (await makeOrSay(path))

/** @throws Error when there is none, or when the file is no keyring. */
export const readKeyring = async (path: string): Promise<KeyringFile> => {
  const file = await readIfThere(path)
  if (file === undefined) throw new Error(`there is no keyring at ${path}`)
  return file
}

/** Replaces the content of a keyring, atomically and with mode 0600. @throws Error when it cannot be written there. */
export const replaceKeyring = async (path: string, file: KeyringFile): Promise<void> => {
  const target = await realpath(path)
  let temporary: string | undefined
  try {
    await access(target, constants.W_OK)
    temporary = await writeBeside(target, file)
    await rename(temporary, target)
    await syncPath(dirname(target))
  } catch (error) {
    if (temporary !== undefined) await unlink(temporary).catch(() => undefined) // the error reports it
    const { code = '' } = error as NodeJS.ErrnoException
    if (!READ_ONLY.has(code)) throw error
    throw new Error(
      `the keyring ${path} cannot be written (${code}), as a secret that is mounted read-only; nothing was changed`,
    )
  }
}

export const newTokenKey = (): TokenKeyEntry => ({
  kid: randomBytes(6).toString('hex'),
  privateKey: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
})

/** Error codes of a file, its folder, or a mount in its place that may not be changed. */
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS', 'EBUSY'])

const makeOrSay = async (path: string): Promise<KeyringFile> => {
  try {
    return await make(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    throw new Error(`the keyring ${path} cannot be made: ${(error as Error).message}`, { cause: error })
  }
}

const make = async (path: string): Promise<KeyringFile> => {
  const file: KeyringFile = {
    format: 'waymark-keyring.v1',
    hashKey: randomBytes(KEY_BYTES).toString('base64url'),
    encryptionKeys: [{ id: randomBytes(4).toString('hex'), key: randomBytes(KEY_BYTES).toString('base64url') }],
    tokenKeys: [newTokenKey()],
  }
  makeFolder(dirname(path))
  const temporary = await writeBeside(path, file)
  try {
    // Unlike a rename, a link never replaces a file that another process has just made.
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return read(path)
  } finally {
    await unlink(temporary)
  }
  await syncPath(dirname(path))
  return file
}

const writeBeside = async (path: string, file: KeyringFile): Promise<string> => {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const handle = await open(temporary, 'wx', 0o600)
  try {
    await handle.writeFile(`${JSON.stringify(file, null, 2)}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  return temporary
}

const readIfThere = async (path: string): Promise<KeyringFile | undefined> => {
  try {
    return await read(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const read = async (path: string): Promise<KeyringFile> => {
  const text = await readFile(path, 'utf8')
  let file: Partial<KeyringFile> | null
  try {
    file = JSON.parse(text) as Partial<KeyringFile> | null
  } catch (error) {
    // The message of a JSON error quotes the text, which holds keys.
    if (error instanceof SyntaxError) throw new Error(`${path} is not JSON`)
    throw error
  }
  const isKeyring =
    file?.format === 'waymark-keyring.v1' && typeof file.hashKey === 'string' && file.encryptionKeys?.[0] !== undefined
  if (!isKeyring || file?.tokenKeys?.[0] === undefined) throw new Error(`${path} is not a keyring`)
  return file as KeyringFile
}
