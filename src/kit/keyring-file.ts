import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
} from 'node:crypto'
import { link, mkdir, open, readFile, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Keyring } from './keyring.ts'

/** What keys.json holds. Keys are base64url, token keys PEM (PKCS #8). */
interface KeyringFile {
  format: 'waymark-keyring.v1'
  /** Root of all keyed hashes; never changes, for hashes are part of stream names. */
  hashKey: string
  /** Newest first; the first one encrypts, all decrypt. */
  encryptionKeys: { id: string; key: string }[]
  /** Newest first; the first one signs, all verify. */
  tokenKeys: { kid: string; privateKey: string }[]
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Token keys that a rotation keeps: what the oldest of them signed has long expired. */
const TOKEN_KEYS_KEPT = 3

/**
 * Opens the keyring, and makes it where there is none: mode 0600, and never two, however many processes start at once.
 * @throws Error when the file is no keyring.
 */
export const openKeyring = async (path: string): Promise<Keyring> => createKeyring((await readIfThere(path)) ?? (await make(path)))

/** Puts a new token key first. Running processes sign with it after their next start; tokens of the keys before stay valid. */
export const rotateTokenKey = async (path: string): Promise<Keyring> => {
  const file = await readIfThere(path)
  if (file === undefined) throw new Error(`there is no keyring at ${path}`)
  const rotated = { ...file, tokenKeys: [newTokenKey(), ...file.tokenKeys].slice(0, TOKEN_KEYS_KEPT) }
  const temporary = await writeBeside(path, rotated)
  await rename(temporary, path)
  return createKeyring(rotated)
}

const createKeyring = (file: KeyringFile): Keyring => {
  const hashRoot = Buffer.from(file.hashKey, 'base64url')
  const encryptionRoots = new Map(file.encryptionKeys.map(({ id, key }) => [id, Buffer.from(key, 'base64url')]))
  const newest = file.encryptionKeys[0].id
  const derived = new Map<string, Buffer>()
  const keyFor = (root: Buffer, label: string): Buffer => {
    const found = derived.get(label)
    if (found !== undefined) return found
    const key = Buffer.from(hkdfSync('sha256', root, '', label, KEY_BYTES))
    derived.set(label, key)
    return key
  }
  const encryptionKey = (id: string, purpose: string): Buffer => {
    const root = encryptionRoots.get(id)
    if (root === undefined) throw new Error(`the keyring has no encryption key ${JSON.stringify(id)}`)
    return keyFor(root, `encrypt/${id}/${purpose}`)
  }
  return {
    fingerprint: createHash('sha256').update('waymark-keyring-fingerprint').update(hashRoot).digest('hex').slice(0, 32),
    hmac: (purpose, text) =>
      createHmac('sha256', keyFor(hashRoot, `hmac/${purpose}`))
        .update(text)
        .digest(),
    encrypt: (purpose, text) => `${newest}.${seal(encryptionKey(newest, purpose), purpose, text)}`,
    decrypt: (purpose, sealed) => {
      const dot = sealed.indexOf('.')
      return unseal(encryptionKey(sealed.slice(0, Math.max(0, dot)), purpose), purpose, sealed.slice(dot + 1))
    },
    tokenKeys: file.tokenKeys.map(({ kid, privateKey }) => ({
      kid,
      privateKey,
      publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString(),
    })),
  }
}

const seal = (key: Buffer, purpose: string, text: string): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')
}

const unseal = (key: Buffer, purpose: string, sealed: string): string => {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error('the encrypted text is cut off')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
}

const make = async (path: string): Promise<KeyringFile> => {
  const file: KeyringFile = {
    format: 'waymark-keyring.v1',
    hashKey: randomBytes(KEY_BYTES).toString('base64url'),
    encryptionKeys: [{ id: randomBytes(4).toString('hex'), key: randomBytes(KEY_BYTES).toString('base64url') }],
    tokenKeys: [newTokenKey()],
  }
  await mkdir(dirname(path), { recursive: true })
  const temporary = await writeBeside(path, file)
  try {
    // Unlike a rename, a link never replaces what another process has just made.
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return read(path)
  } finally {
    await unlink(temporary)
  }
  await syncFolder(dirname(path))
  return file
}

const newTokenKey = (): KeyringFile['tokenKeys'][number] => ({
  kid: randomBytes(6).toString('hex'),
  privateKey: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
})

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

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
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
  const isKeyring = file?.format === 'waymark-keyring.v1' && typeof file.hashKey === 'string' && file.encryptionKeys?.[0] !== undefined
  if (!isKeyring || file?.tokenKeys?.[0] === undefined) throw new Error(`${path} is not a keyring`)
  return file as KeyringFile
}
