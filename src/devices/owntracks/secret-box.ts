import nacl from 'tweetnacl'
import { jsonOf } from '../values.ts'

const { secretbox } = nacl

/** The JSON inside `data`: a nonce of 24 bytes, then the output of libsodium's secretbox. Undefined for another key. */
export const openSecretBox = (data: string, secret: string): unknown => {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length < secretbox.nonceLength + secretbox.overheadLength) return undefined
  const nonce = bytes.subarray(0, secretbox.nonceLength)
  const text = secretbox.open(bytes.subarray(secretbox.nonceLength), nonce, keyOf(secret))
  return text === null ? undefined : jsonOf(text)
}

/** Shorter texts are padded with zeros, as the apps do. */
const keyOf = (secret: string): Uint8Array => {
  const key = new Uint8Array(secretbox.keyLength)
  key.set(Buffer.from(secret).subarray(0, secretbox.keyLength))
  return key
}
