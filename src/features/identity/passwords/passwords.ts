import { hash, verify } from '@node-rs/argon2'
import { Failure } from '../../../kernel/errors.ts'
import { FairQueue } from '../../../kernel/fair-queue.ts'

/** Hashes computed at one time: each takes a thread of libuv's pool (four by default) and 19 MiB. */
const HASHES_AT_ONCE = 2
/** Most waiting in one lane: at about 30 ms each, the last one waits three seconds while all lanes are full. */
const WAITING_MAX = 64

/**
 * Work waits in lanes that take turns, each of them fair to its sources: new passwords block no logins, and logins from
 * known networks do not wait for strangers' guesses.
 */
type Lane = 'known' | 'login' | 'new'

interface Waiting {
  start(): void
  refuse(): void
}

/** Counts guesses and refuses further ones. */
export interface GuessGuard {
  network: string
  /** Whether the identity has logged in from there before. */
  isKnown(): Promise<boolean>
  admit(): Promise<void>
  noteFailure(): Promise<void>
}

/**
 * argon2id with the parameters that OWASP names first for it (19 MiB, two passes, one lane), bounded: requests beyond a
 * full lane are refused with `overloaded`, because each hash holds memory and a thread that other work needs too.
 */
export class Passwords {
  /** The lane whose turn is next comes first. */
  private readonly lanes = new Map<Lane, FairQueue<Waiting>>(
    (['known', 'login', 'new'] as const).map((lane) => [lane, new FairQueue<Waiting>(WAITING_MAX)]),
  )
  private running = 0
  private decoy: Promise<string> | undefined

  /** For a new password. `source`: network or organization of the request. @throws Failure overloaded */
  hash(password: string, source: string): Promise<string> {
    return this.bounded('new', source, () => hash(password))
  }

  /**
   * Whether the password matches the hash; without a hash the same work is done and the answer is no. `guard` is called
   * when the turn has come and learns of a failure before the next turn, so that simultaneous guesses count against
   * each other.
   * @throws Failure overloaded, or errors of `guard`
   */
  async verify(password: string, passwordHash: string | undefined, guard: GuessGuard): Promise<boolean> {
    const lane = (await guard.isKnown()) ? 'known' : 'login'
    return this.bounded(lane, guard.network, async () => {
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

  private async bounded<Result>(lane: Lane, source: string, run: () => Promise<Result>): Promise<Result> {
    if (this.running >= HASHES_AT_ONCE) await this.turn(lane, source)
    else this.running++
    try {
      return await run()
    } finally {
      const next = this.next()
      if (next === undefined) this.running--
      else next.start()
    }
  }

  private turn(lane: Lane, source: string): Promise<void> {
    return new Promise((start, reject) => {
      const refuse = (): void => reject(new Failure('overloaded', { retryAfterSeconds: 2 }))
      this.lanes.get(lane)?.push(source, { start, refuse })?.refuse()
    })
  }

  private next(): Waiting | undefined {
    for (const [lane, queue] of this.lanes) {
      const next = queue.shift()
      if (next === undefined) continue
      this.lanes.delete(lane)
      this.lanes.set(lane, queue)
      return next
    }
    return undefined
  }
}
