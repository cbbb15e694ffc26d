import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { FileKeyring } from './keyring-file.ts'

/** The token key that signs now, and the time until which earlier ones verify (RFC 3339). */
export interface TokenKeysReport {
  kid: string
  before: { kid: string; verifiesUntil: string }[]
}

const HOUR_MS = 3_600_000

/** Rotates the token key when asked, and drops keys from the file once none of their tokens can be valid. */
export const openTokenKeys = async (
  { keyring, clock, logger }: { keyring: FileKeyring; clock: Clock; logger: Logger },
  tokenTtlMs: number,
) => {
  let cancel = (): void => undefined
  let changing: Promise<unknown> = Promise.resolve()
  const inTurn = <Result>(change: () => Promise<Result>): Promise<Result> => {
    const result = changing.then(change)
    changing = result.catch(() => undefined) // the asker gets the rejection
    return result
  }
  const drop = async (): Promise<void> => {
    await inTurn(() => keyring.dropTokenKeys(clock.now())).catch((error: unknown) =>
      logger.warn('old token keys stay in the keyring', { error: String(error) }),
    )
    cancel = clock.after(HOUR_MS, () => void drop())
  }
  await drop()
  return {
    rotate: () => inTurn(() => rotateTokenKey(keyring, clock, tokenTtlMs)),
    close: async (): Promise<void> => {
      cancel()
      await changing
    },
  }
}

export const rotateTokenKey = async (
  keyring: FileKeyring,
  clock: Clock,
  tokenTtlMs: number,
): Promise<TokenKeysReport> => {
  await keyring.rotateTokenKey(clock.now(), tokenTtlMs)
  const [{ kid }, ...before] = keyring.tokenKeys
  return {
    kid,
    before: before.map((key) => ({ kid: key.kid, verifiesUntil: new Date(key.verifiesUntil ?? 0).toISOString() })),
  }
}
