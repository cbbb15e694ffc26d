import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  hkdfSync,
  randomBytes,
} from 'node:crypto'
import {
  KEY_BYTES,
  newTokenKey,
  readKeyring,
  readOrMakeKeyring,
  replaceKeyring,
  type KeyringFile,
  type TokenKeyEntry,
} from './keyring-store.ts'
import type { Keyring } from './keyring.ts'

/** A keyring whose token keys can be changed, in its file and for its holders. */
export interface FileKeyring extends Keyring {
  /**
   * Signs with a new key from now on. The old one verifies for `tokenTtlMs` more: until the last token that it signed
   * has expired. `now` in ms since the epoch.
   * @throws Error when the file cannot be written; then nothing has changed.
   */
  rotateTokenKey(now: number, tokenTtlMs: number): Promise<void>
  /** Drops the keys that no longer verify; answers whether there were any. */
  dropTokenKeys(now: number): Promise<boolean>
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Opens the keyring, and makes it where there is none: mode 0600, and never two, however many processes start at once.
 * @throws Error when the file is no keyring.
 */
export const openKeyring = async (path: string): Promise<FileKeyring> => {
  const file = await readOrMakeKeyring(path)
  let tokenKeys = shown(file.tokenKeys)
  const change = async (changed: (keys: readonly TokenKeyEntry[]) => TokenKeyEntry[]): Promise<void> => {
    const now = await readKeyring(path)
    const next = changed(now.tokenKeys)
    await replaceKeyring(path, { ...now, tokenKeys: next })
    tokenKeys = shown(next)
  }
  const keyring = createKeyring(file)
  return {
    ...keyring,
    get tokenKeys() {
      return tokenKeys
    },
    rotateTokenKey: (now, tokenTtlMs) => change((keys) => rotateTokenKeys(keys, now, tokenTtlMs)),
    dropTokenKeys: async (now) => {
      const isDropping = tokenKeys.some(({ verifiesUntil = now }) => verifiesUntil < now)
      if (isDropping) await change((keys) => verifyingTokenKeys(keys, now))
      return isDropping
    },
  }
}

const createKeyring = (file: KeyringFile): Omit<Keyring, 'tokenKeys'> => {
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
  }
}

const shown = (keys: readonly TokenKeyEntry[]): Keyring['tokenKeys'] =>
  keys.map((key) => ({
    ...key,
    publicKey: createPublicKey(key.privateKey).export({ type: 'spki', format: 'pem' }).toString(),
  }))

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

/** Number of keys that verify at a time: a token names its key, so more keys only enlarge the file. */
const KEYS_MAX = 16

/** A new key first; the signing one verifies for `tokenTtlMs` more. @throws Error when too many still verify. */
const rotateTokenKeys = (keys: readonly TokenKeyEntry[], now: number, tokenTtlMs: number): TokenKeyEntry[] => {
  const before = verifyingTokenKeys(keys, now).map((key) => ({
    ...key,
    verifiesUntil: key.verifiesUntil ?? now + wholeSeconds(tokenTtlMs),
  }))
  if (before.length >= KEYS_MAX)
    throw new Error(`${before.length} token keys verify still; the next one can be made when the oldest has ended`)
  return [newTokenKey(), ...before]
}

/** Keys that still sign or verify. */
const verifyingTokenKeys = (keys: readonly TokenKeyEntry[], now: number): TokenKeyEntry[] =>
  keys.filter(({ verifiesUntil = now }) => verifiesUntil >= now)

/** In the unit of tokens. */
const wholeSeconds = (ms: number): number => Math.ceil(ms / 1000) * 1000
