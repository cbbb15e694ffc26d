/** The keys of an installation: signing of tokens, encryption of secrets at rest, and keyed hashes. The same on every node. */
export interface Keyring {
  /** Recorded in the log; a node whose keyring has another one refuses to start. */
  fingerprint: string
  /** HMAC-SHA256 under a key of its own for each purpose (`unique`, `trip-token`, `device-key`, `idempotency`, …). */
  hmac(purpose: string, text: string): Buffer
  /** AES-256-GCM, base64url, with the key's id in front. */
  encrypt(purpose: string, text: string): string
  /** @throws Error when the text was not made by `encrypt` with this purpose and a key of this ring. */
  decrypt(purpose: string, sealed: string): string
  /** Ed25519 keys for tokens as they are now, newest first; the first one signs. */
  readonly tokenKeys: readonly TokenKey[]
}

/** PEM. */
export interface TokenKey {
  kid: string
  privateKey: string
  publicKey: string
  /** Time at which a key that no longer signs ceases to verify, ms since the epoch. */
  verifiesUntil?: number
}
