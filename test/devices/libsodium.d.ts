declare module 'libsodium-wrappers' {
  const sodium: {
    ready: Promise<void>
    crypto_secretbox_NONCEBYTES: number
    randombytes_buf(bytes: number): Uint8Array
    crypto_secretbox_easy(text: string, nonce: Uint8Array, key: Uint8Array): Uint8Array
  }
  export default sodium
}
