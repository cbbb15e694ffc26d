import type { Caller, IngestKeyCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'

const EVERY_MS = 60_000

export interface FlagKeyOptions {
  /** Without the dashes: `devices-key`, `mqtt-key`. */
  flag: string
  key: string
  /** @throws Failure unauthenticated, engine_down */
  authenticate(key: string): Promise<Caller>
  clock: Clock
  logger: Logger
}

/**
 * The ingest key of a flag, under which every device comes. One that has ended refuses all of them, and they have no
 * way to say so: it is logged once a minute, and shown by `waymark doctor`.
 */
export class FlagKey {
  private readonly options: FlagKeyOptions
  private told = Number.NEGATIVE_INFINITY
  problem: string | undefined

  constructor(options: FlagKeyOptions) {
    this.options = options
  }

  /** Looked up for each message, so that a key stops working as soon as it ends. @throws Failure */
  async caller(): Promise<IngestKeyCaller> {
    const { flag, key, authenticate } = this.options
    const caller = await authenticate(key).catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'unauthenticated')
        this.refuse(`--${flag} is no key, or one that has ended`)
      throw error
    })
    if (caller.kind !== 'ingestKey') throw this.refuse(`--${flag} is the key of a tracker`)
    this.problem = undefined
    return caller
  }

  private refuse(problem: string): Failure {
    const { flag, clock, logger } = this.options
    this.problem = problem
    if (clock.now() - this.told >= EVERY_MS) {
      this.told = clock.now()
      logger.warn('no device is served', { problem, advice: `give --${flag} an ingest key that exists` })
    }
    return new Failure('unauthenticated', { message: `${problem}; give an ingest key.` })
  }
}
