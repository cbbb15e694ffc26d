import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import { type Held, type Leases, LeaseRows, type LeaseTables, type Member } from './lease-rows.ts'
import type { Owned, Owners } from './owners.ts'
import type { Life } from '../operations/life.ts'
import { pause, untilDone } from './retry.ts'
import { sharesOf } from './shares.ts'

/** How often a process gives a sign of life and looks at what is whose. */
const LOOK_MS = 1_000
/** Whoever gives no sign for so long has died; what it had is taken by others. */
const LIFE_MS = 8_000
const BORROW_LOOK_MS = 100

/** A process as this one sees it. */
interface Seen extends Member {
  /** How long this process has looked without seeing a sign of life. */
  silentMs: number
}

interface Joined {
  owned: Owned
  state: 'idle' | 'taken' | 'leaving'
  isEnding: boolean
  /** Ends the attempts to take it. */
  abort: AbortController
  /** Taking and leaving, one after the other. */
  turn: Promise<void>
}

export interface LeaseServices {
  tables: LeaseTables
  clock: Clock
  logger: Logger
  life: Life
}

/**
 * Shares out between processes what one at a time does. All of them compute the same shares from the same rows; whoever
 * has what is no longer its share leaves it, and whoever's share is free takes it. A lease alone protects nothing (a
 * process may stand still for a minute and go on): what it does is fenced by checkpoints and expected revisions.
 */
export class LeaseOwners implements Owners {
  private readonly services: LeaseServices
  private readonly joined = new Map<string, Joined>()
  private readonly borrowing = new Set<string>()
  private readonly rows: LeaseRows
  private members: ReadonlyMap<string, Seen> = new Map()
  private beat = 0
  private lookedAtMs: number
  private looking: Promise<void> = Promise.resolve()
  private next: Promise<void> | undefined
  private held: Held = { owners: {}, borrowed: {} }
  /** Whose everything should be, by name. */
  private shares: ReadonlyMap<string, string> = new Map()
  private cancelTimer = (): void => undefined
  private isClosed = false

  private constructor(services: LeaseServices) {
    this.services = services
    this.rows = new LeaseRows(services.tables)
    this.lookedAtMs = services.clock.monotonic()
  }

  static async open(services: LeaseServices): Promise<LeaseOwners> {
    const owners = new LeaseOwners(services)
    await owners.rows.declare()
    await owners.look()
    services.tables.onLoss(() => owners.takeAgain())
    return owners
  }

  async join(all: readonly Owned[]): Promise<{ leave(): Promise<void> }> {
    const own = all.map((owned): Joined => {
      const abort = new AbortController()
      return { owned, state: 'idle', isEnding: false, abort, turn: Promise.resolve() }
    })
    for (const joined of own) this.joined.set(joined.owned.name, joined)
    await this.look()
    await Promise.all(own.map(({ turn }) => turn))
    return {
      leave: async () => {
        for (const joined of own) {
          joined.isEnding = true
          this.leave(joined)
        }
        await Promise.all(own.map(({ turn }) => turn))
        for (const { owned } of own) this.joined.delete(owned.name)
        await this.look()
      },
    }
  }

  async borrow<Result>(names: readonly string[], run: () => Promise<Result>): Promise<Result> {
    for (const name of names) this.borrowing.add(name)
    try {
      for (;;) {
        await this.look()
        if (names.every((name) => this.held.borrowed[name] === this.owner && this.held.owners[name] === undefined))
          break
        if (this.isClosed) throw new Error('the service is stopping')
        await pause(this.services.clock, BORROW_LOOK_MS)
      }
      return await run()
    } finally {
      for (const name of names) this.borrowing.delete(name)
      await this.look()
    }
  }

  /** Gives up what is left, so that others need not wait until this process is held to be dead. */
  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer()
    await this.looking
    this.joined.clear()
    this.borrowing.clear()
    await this.change().catch((error: unknown) => this.warn(error))
  }

  private get owner(): string {
    return this.services.life.id
  }

  /** Looks at what is whose, and does what follows; resolves when a look that began after the call has ended. */
  private look(): Promise<void> {
    this.next ??= this.looking.then(() => {
      this.next = undefined
      this.looking = this.lookOnce()
      return this.looking
    })
    return this.next
  }

  private async lookOnce(): Promise<void> {
    if (this.isClosed) return
    this.cancelTimer()
    try {
      await this.rows.sign(this.owner, { node: this.services.life.node, beat: ++this.beat, joins: this.joins() })
      this.see(await this.rows.read())
      this.shares = this.sharesNow()
      if (this.dead().length > 0 || !isSame(this.held, this.after(this.held))) await this.change()
      this.follow()
    } catch (error) {
      // Nobody can take anything either.
      this.warn(error)
    }
    this.cancelTimer = this.services.clock.after(LOOK_MS, () => void this.look())
  }

  private see({ held, members }: Leases): void {
    const nowMs = this.services.clock.monotonic()
    // Who stood still meanwhile did not see that nobody gave a sign.
    const lookedMs = Math.min(nowMs - this.lookedAtMs, 2 * LOOK_MS)
    this.lookedAtMs = nowMs
    const before = this.members
    this.held = held
    this.members = new Map(
      [...members].map(([owner, member]) => {
        const known = before.get(owner)
        return [owner, { ...member, silentMs: known?.beat === member.beat ? known.silentMs + lookedMs : 0 }]
      }),
    )
  }

  private async change(): Promise<void> {
    this.held = await this.rows.change((held) => this.after(held), this.dead())
  }

  /** What this process makes of what is whose: what the dead had is free, what is its share and free is its own. */
  private after(held: Held): Held {
    const owners = Object.fromEntries(
      Object.entries(held.owners).filter(([name, owner]) => this.lives(owner) && !this.isDone(name, owner)),
    )
    const borrowed = Object.fromEntries(
      Object.entries(held.borrowed).filter(
        ([name, owner]) => this.lives(owner) && (owner !== this.owner || this.borrowing.has(name)),
      ),
    )
    for (const name of this.borrowing) borrowed[name] ??= this.owner
    for (const [name, { isEnding }] of this.joined)
      if (!isEnding && borrowed[name] === undefined && this.shares.get(name) === this.owner) owners[name] ??= this.owner
    return { owners, borrowed }
  }

  /** Whether something is this process's and is not done here any more. */
  private isDone(name: string, owner: string): boolean {
    if (owner !== this.owner) return false
    const joined = this.joined.get(name)
    return joined === undefined || (joined.state === 'idle' && !this.mayHold(joined))
  }

  private mayHold({ owned: { name }, isEnding }: Joined): boolean {
    return !isEnding && this.held.borrowed[name] === undefined && this.shares.get(name) === this.owner
  }

  private follow(): void {
    for (const joined of this.joined.values()) {
      const isOurs = this.held.owners[joined.owned.name] === this.owner
      if (isOurs && joined.state === 'idle' && this.mayHold(joined)) this.take(joined)
      else if (joined.state === 'taken' && !(isOurs && this.mayHold(joined))) this.leave(joined)
    }
  }

  private take(joined: Joined): void {
    const { owned } = joined
    const { clock, logger } = this.services
    const abort = (joined.abort = new AbortController())
    const isOurs = async (): Promise<boolean> => !abort.signal.aborted && (await this.isOurs(owned.name))
    const onFailure = (error: unknown): void =>
      logger.error('a consumer could not be taken', { consumer: owned.name, error: String(error) })
    joined.state = 'taken'
    joined.turn = untilDone(() => owned.take(isOurs), { clock, signal: abort.signal, onFailure })
  }

  /** Has everything left and taken anew, since checkpoints may have gone backwards. */
  private takeAgain(): void {
    this.services.logger.warn(
      'the tables may have lost something, or another version of Waymark changed them; everything is taken anew',
    )
    for (const joined of this.joined.values()) this.leave(joined)
  }

  private leave(joined: Joined): void {
    const { owned, abort } = joined
    if (joined.state !== 'taken') return
    joined.state = 'leaving'
    abort.abort()
    const leave = async (): Promise<void> => {
      await owned.leave().catch((error: unknown) =>
        this.services.logger.error('a consumer was not left as it should be', {
          consumer: owned.name,
          error: String(error),
        }),
      )
      joined.state = 'idle'
      if (!joined.isEnding) void this.look() // whoever's share it is need not wait
    }
    joined.turn = joined.turn.then(leave)
  }

  private async isOurs(name: string): Promise<boolean> {
    return (await this.rows.held()).owners[name] === this.owner
  }

  private dead(): string[] {
    return [...this.members.keys()].filter((owner) => !this.lives(owner))
  }

  private lives(owner: string): boolean {
    if (owner === this.owner) return !this.isClosed
    const member = this.members.get(owner)
    return member !== undefined && member.node !== this.services.life.node && member.silentMs < LIFE_MS
  }

  private sharesNow(): ReadonlyMap<string, string> {
    const others = [...this.members].filter(([owner]) => owner !== this.owner && this.lives(owner))
    const joins = others.map(([owner, member]): [string, readonly string[]] => [owner, member.joins])
    return sharesOf(new Map([...joins, [this.owner, this.joins()]]))
  }

  private joins(): string[] {
    return [...this.joined.values()].filter(({ isEnding }) => !isEnding).map(({ owned }) => owned.name)
  }

  private warn(error: unknown): void {
    this.services.logger.warn('leases not looked at', { error: String(error) })
  }
}

const isSame = (one: Held, other: Held): boolean =>
  isSameMap(one.owners, other.owners) && isSameMap(one.borrowed, other.borrowed)

const isSameMap = (one: Held['owners'], other: Held['owners']): boolean => {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}
