import type { Caller } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Channel } from '../kit/http/channel.ts'

export interface ConnectionOptions {
  channel: Channel
  address: string
  authTimeoutMs: number
  clock: Clock
  logger: Logger
  authenticate(token: string): Promise<Caller>
  /** The connection has a caller from here on, and is looked up again when that one's access changes. */
  authenticated(): void
  /** It is gone. */
  closed(): void
}

export interface Credential {
  token: string
  caller: Caller
}
