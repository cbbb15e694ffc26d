import { hash, verify } from '@node-rs/argon2'
import { Failure } from '../../kernel/errors.ts'
import { BoundedQueue } from '../../kernel/bounded-queue.ts'

/** Hashes under way at one time: each takes a thread of libuv's pool (four by default) and 19 MiB. */
const HASHES_AT_ONCE = 2
/** Those that may wait: at about 30 ms each, the last one waits a second. */
const WAITING_MAX = 64

/** Counts guesses and refuses further ones. */
export interface GuessGuard {
  admit(): Promise<void>
  noteFailure(): Promise<void>
}

/**
 * argon2id with the parameters that OWASP names first for it (19 MiB, two passes, one lane), bounded: more than the
 * queue holds are refused with `overloaded`, for each hash holds memory and a thread that other work needs too.
 */
export class Passwords {
  private readonly waiting = new BoundedQueue<() => void>(WAITING_MAX)
  private running = 0
  private decoy: Promise<string> | undefined

  /** @throws Failure overloaded */
  hash(password: string): Promise<string> {
    return this.bounded(() => hash(password))
  }

  /**
   * Whether the password belongs to the hash; without a hash the same work is done and the answer is no.
   * `guard` is asked when the turn has come and told of a failure before the next turn, so that guesses that come at
   * the same time count against each other.
   * @throws Failure overloaded, or what `guard.admit` throws
   */
  verify(password: string, passwordHash: string | undefined, guard: GuessGuard): Promise<boolean> {
    return this.bounded(async () => {
      await guard.admit()
      const isRight = (await verify(passwordHash ?? (await this.decoyHash()), password)) && passwordHash !== undefined
      if (!isRight) await guard.noteFailure()
      return isRight
    })
  }

  private decoyHash(): Promise<string> {
    this.decoy ??= hash('no password of anybody')
    return this.decoy
  }

  private async bounded<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.running >= HASHES_AT_ONCE) await this.turn()
    else this.running++
    try {
      return await run()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.running--
      else next()
    }
  }

  private turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.waiting.push(resolve)) reject(new Failure('overloaded', { retryAfterSeconds: 2 }))
    })
  }
}
