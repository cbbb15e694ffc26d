import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import { LeaseMembers, LOOK_MS } from './lease-members.ts'
import { frees, type Held, isSameHeld, LeaseRows, type LeaseTables } from './lease-rows.ts'
import { allShown, bySpeed, byUrgency, type Joined, joinedOf, logTaken } from './lease-parts.ts'
import type { Owned, Owners } from './owners.ts'
import type { Life } from '../operations/life.ts'
import { pause, untilDone, within } from './retry.ts'

const BORROW_LOOK_MS = 100
/** Longest wait of slow parts for the others when all are left, and of all others for urgent ones when they are taken. */
const QUICK_MS = 500

export interface LeaseServices {
  tables: LeaseTables
  clock: Clock
  logger: Logger
  life: Life
}

/**
 * Shares out parts that one process at a time runs. All processes compute the same shares from the same rows; the owner
 * of a part outside its share leaves it, and the process whose share is free takes it. A lease alone protects nothing
 * (a process may stand still for a minute and go on): its writes are fenced by checkpoints and expected revisions.
 */
export class LeaseOwners implements Owners {
  private readonly services: LeaseServices
  private readonly joined = new Map<string, Joined>()
  private readonly borrowing = new Set<string>()
  private readonly rows: LeaseRows
  private readonly members: LeaseMembers
  private looking: Promise<void> = Promise.resolve()
  private next: Promise<void> | undefined
  /** Whether the next look reads what is stored, or only gives away what was left. */
  private mustRead = false
  private cancelTimer = (): void => undefined
  private held: Held = { owners: {}, borrowed: {} }
  /** Rightful owner of each part, by name. */
  private shares: ReadonlyMap<string, string> = new Map()
  private signedJoins = ''
  private announcing: Promise<void> = Promise.resolve()
  private isClosed = false

  private constructor(services: LeaseServices) {
    this.services = services
    this.rows = new LeaseRows(services.tables)
    this.members = new LeaseMembers(services.life, services.clock.monotonic())
  }

  static async open(services: LeaseServices): Promise<LeaseOwners> {
    const owners = new LeaseOwners(services)
    await owners.rows.declare()
    await owners.look()
    services.tables.onLoss(() => owners.takeAgain())
    owners.rows.onAnnounced(services.life.id, () => void owners.look())
    return owners
  }

  async join(all: readonly Owned[]): Promise<{ leave(): Promise<void> }> {
    const own = all.map(joinedOf)
    for (const joined of own) this.joined.set(joined.owned.name, joined)
    await this.look()
    const awaited = this.members.hasOthers() ? bySpeed(own).quick : own
    await Promise.all(awaited.map(({ turn }) => turn))
    return {
      leave: async () => {
        this.begin(own)
        await Promise.all(own.map(({ turn }) => turn))
        for (const { owned } of own) this.joined.delete(owned.name)
        await this.look()
      },
    }
  }

  leaveAll(): void {
    if (!this.members.hasOthers()) return
    this.rows.prepare()
    this.begin([...this.joined.values()])
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

  /** Starts to leave these for good. */
  private begin(leaving: readonly Joined[]): void {
    const { quick, slow } = bySpeed(leaving)
    for (const joined of [...quick, ...slow]) joined.isEnding = true
    for (const joined of quick) this.leave(joined)
    const left = within(this.services.clock, QUICK_MS, Promise.all(quick.map(({ turn }) => turn)))
    for (const joined of slow) this.leave(joined, left)
    void this.look() // the next owners are known before the parts are free
  }

  /** Gives up the rest, so that others need not wait until this process is taken for dead. */
  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer()
    await this.looking
    this.joined.clear()
    this.borrowing.clear()
    await this.change().catch((error: unknown) => this.warn(error))
    await this.announcing
  }

  private get owner(): string {
    return this.services.life.id
  }

  /** Looks at the leases and acts on them; resolves when a look that began after the call has ended. */
  private look(): Promise<void> {
    this.mustRead = true
    return this.lookSoon()
  }

  private lookSoon(): Promise<void> {
    this.next ??= this.looking.then(() => {
      this.next = undefined
      this.looking = this.lookOnce()
      return this.looking
    })
    return this.next
  }

  private async lookOnce(): Promise<void> {
    if (this.isClosed) return
    const { mustRead } = this
    this.mustRead = false
    try {
      if (mustRead) await this.read()
      if (this.members.dead().length > 0 || !isSameHeld(this.held, this.after(this.held))) {
        await this.change()
        this.follow()
      }
    } catch (error) {
      // Nobody can take anything either.
      this.warn(error)
    }
    if (mustRead && !this.isClosed) this.cancelTimer = this.services.clock.after(LOOK_MS, () => void this.look())
  }

  /** Gives a sign of life and reads what is whose. */
  private async read(): Promise<void> {
    this.cancelTimer()
    const { clock, logger } = this.services
    const joins = this.joins()
    const sign = this.members.sign(joins, clock.monotonic())
    // Neither is waited for: a server of others may not answer.
    void this.rows.show(this.owner).then((isShown) => (this.members.isShown = isShown))
    const [{ held, members }] = await Promise.all([this.rows.read(), this.rows.sign(this.owner, sign)])
    this.held = held
    this.members.see(members, clock.monotonic())
    if (this.members.silent().length > 0) void this.seeConnected()
    this.shares = this.members.shares(joins)
    for (const { owner, silentMs } of this.members.dead())
      logger.warn('a process gives no sign of life; what it had is taken by others', { owner, silentMs })
    if (this.signedJoins !== joins.join()) this.announcing = this.rows.announce(this.owner)
    this.signedJoins = joins.join()
    this.follow()
  }

  private async seeConnected(): Promise<void> {
    this.members.seeConnected(await this.rows.shown())
    if (this.members.dead().length > 0) void this.look()
  }

  private async change(): Promise<void> {
    const dead = this.members.dead().map(({ owner }) => owner)
    let isFreed = false
    const edit = (held: Held): Held => {
      const after = this.after(held)
      isFreed = frees(held, after)
      return after
    }
    this.held = await this.rows.change(edit, this.isClosed ? [...dead, this.owner] : dead)
    if (isFreed) this.announcing = this.rows.announce(this.owner)
  }

  /**
   * The leases as this process changes them: parts of the dead, and parts that have ended here, go to their rightful
   * owners, who need not ask; free parts of its own share become its own.
   */
  private after(held: Held): Held {
    const borrowed = Object.fromEntries(
      Object.entries(held.borrowed).filter(
        ([name, owner]) => this.lives(owner) && (owner !== this.owner || this.borrowing.has(name)),
      ),
    )
    for (const name of this.borrowing) borrowed[name] ??= this.owner
    const owners: { [name: string]: string } = {}
    for (const [name, owner] of Object.entries(held.owners)) {
      const heir = borrowed[name] === undefined ? this.shares.get(name) : undefined
      if (this.lives(owner) && !this.isDone(name, owner)) owners[name] = owner
      else if (heir !== undefined && heir !== this.owner) owners[name] = heir
    }
    for (const [name, { isEnding }] of this.joined)
      if (!isEnding && borrowed[name] === undefined && this.shares.get(name) === this.owner) owners[name] ??= this.owner
    return { owners, borrowed }
  }

  /** Whether a part belongs to this process and no longer runs here. */
  private isDone(name: string, owner: string): boolean {
    if (owner !== this.owner) return false
    const joined = this.joined.get(name)
    return joined === undefined || (joined.state === 'idle' && !this.mayHold(joined))
  }

  private mayHold({ owned: { name }, isEnding }: Joined): boolean {
    return !isEnding && this.held.borrowed[name] === undefined && this.shares.get(name) === this.owner
  }

  private follow(): void {
    const taken: Joined[] = []
    for (const joined of this.joined.values()) {
      const isOurs = this.held.owners[joined.owned.name] === this.owner
      if (isOurs && joined.state === 'idle' && this.mayHold(joined)) taken.push(joined)
      else if (joined.state === 'taken' && !(isOurs && this.mayHold(joined))) this.leave(joined)
    }
    const { urgent, others } = byUrgency(taken)
    for (const joined of urgent) this.take(joined)
    const shown = urgent.length > 0 ? within(this.services.clock, QUICK_MS, allShown(urgent)) : undefined
    for (const joined of others) this.take(joined, shown)
    void logTaken(taken, this.services)
  }

  private take(joined: Joined, after?: Promise<unknown>): void {
    const { owned } = joined
    const { clock, logger } = this.services
    const abort = (joined.abort = new AbortController())
    const isOurs = async (): Promise<boolean> => !abort.signal.aborted && (await this.isOurs(owned.name))
    const onFailure = (error: unknown): void =>
      logger.error('a consumer could not be taken', { consumer: owned.name, error: String(error) })
    joined.state = 'taken'
    const take = () => untilDone(() => owned.take(isOurs), { clock, signal: abort.signal, onFailure })
    joined.turn = after === undefined ? take() : after.then(take)
  }

  /** Leaves everything and takes it again, since checkpoints may have gone backwards. */
  private takeAgain(): void {
    this.services.logger.warn(
      'the tables may have lost something, or another version of Waymark changed them; everything is taken anew',
    )
    for (const joined of this.joined.values()) this.leave(joined)
  }

  private leave(joined: Joined, after: Promise<unknown> = Promise.resolve()): void {
    const { owned, abort } = joined
    if (joined.state !== 'taken') return
    joined.state = 'leaving'
    abort.abort()
    const leave = async (): Promise<void> => {
      await after
      await owned.leave().catch((error: unknown) =>
        this.services.logger.error('a consumer was not left as it should be', {
          consumer: owned.name,
          error: String(error),
        }),
      )
      joined.state = 'idle'
      void this.lookSoon() // whoever's share it is need not wait
    }
    joined.turn = joined.turn.then(leave)
  }

  private async isOurs(name: string): Promise<boolean> {
    return (await this.rows.held()).owners[name] === this.owner
  }

  private lives(owner: string): boolean {
    return owner === this.owner ? !this.isClosed : this.members.lives(owner)
  }

  private joins(): string[] {
    return [...this.joined.values()].filter(({ isEnding }) => !isEnding).map(({ owned }) => owned.name)
  }

  private warn(error: unknown): void {
    this.services.logger.warn('leases not looked at', { error: String(error) })
  }
}
