import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import { NO_SUMS, USES, type UsesRow } from './uses.ts'

export interface Quota {
  /** Its name in `limits` and `uses`. */
  name: string
  /** In a sentence, as in `10 trackers`. */
  thing: string
  max: number
  /** The table whose rows are counted; left out, the sum of that name in `USES` is read. */
  table?: string
  /** The projection that keeps that table. */
  consumer: string
}

/** Takes a place for something new of that name; a repeated take for the same command replaces the one before. @throws Failure quota */
export type TakePlace = (name: string, amount?: number) => Promise<void>

/** Things about to be made, or made but perhaps not in the tables yet. */
interface Hold {
  amount: number
  /** Position in the log; undefined until it is there. */
  position?: number
}

interface Use {
  /** As counted in the tables. */
  stored: number
  countedAt: number
  holds: Set<Hold>
  held: number
  counting?: Promise<void>
  next?: Promise<void>
}

/** Time for which a count is trusted: other processes make things too. */
const COUNT_AGAIN_MS = 10_000
/** The same near the limit. */
const COUNT_AGAIN_NEAR_MS = 1_000
const NEAR = 0.9
/** Holds above which a count is made early. */
const HOLDS_MAX = 10_000
const COUNTS_MAX = 5
const USES_MAX = 10_000

/**
 * Limits and uses of each organization. A place is taken before something is made, so that commands of one process
 * never pass the limit, however many come at once. Other processes are noticed through the tables: several together may
 * pass it by the number that the others make in the ten seconds (near the limit, one) for which a count is trusted.
 */
export class Quotas {
  private readonly services: { tables: Pick<TableStore, 'find' | 'get' | 'checkpoint'>; clock: Clock }
  private readonly quotas: ReadonlyMap<string, Quota>
  private readonly uses = new RecentMap<string, Use>(USES_MAX)

  constructor(
    services: { tables: Pick<TableStore, 'find' | 'get' | 'checkpoint'>; clock: Clock },
    quotas: readonly Quota[],
  ) {
    this.services = services
    this.quotas = new Map(quotas.flatMap((quota) => [quota.name, quota.table ?? quota.name].map((key) => [key, quota])))
  }

  limits(): { [name: string]: number } {
    return Object.fromEntries([...this.quotas.values()].map(({ name, max }) => [name, max]))
  }

  /** Uses according to the tables. @throws Failure engine_down */
  async usesOf(organizationId: string): Promise<{ [name: string]: number }> {
    const quotas = [...new Set(this.quotas.values())]
    const stored = await Promise.all(quotas.map((quota) => this.stored(organizationId, quota)))
    return Object.fromEntries(quotas.map(({ name }, i) => [name, stored[i]]))
  }

  /**
   * Runs a command that takes places, named by quota or table, for the things it makes; they are free again where it
   * wrote nothing. Things without a quota are not bounded.
   * @throws Failure quota of a missing place
   */
  async within<Done extends { wrote?: { position: number } }>(
    organizationId: string,
    run: (take: TakePlace) => Promise<Done>,
  ): Promise<Done> {
    const taken = new Map<Use, Hold>()
    let position: number | undefined
    try {
      const done = await run(async (name, amount = 1) => {
        const quota = this.quotas.get(name)
        if (quota !== undefined) await this.take(organizationId, quota, amount, taken)
      })
      position = done.wrote?.position
      return done
    } finally {
      for (const [use, hold] of taken) {
        if (position === undefined) drop(use, hold)
        else hold.position = position
      }
    }
  }

  /** Remaining amount. @throws Failure engine_down */
  async left(organizationId: string, name: string): Promise<number> {
    const quota = this.quotas.get(name)
    if (quota === undefined) return Number.POSITIVE_INFINITY
    const use = this.useOf(organizationId, quota)
    await this.recount(organizationId, quota, use)
    return Math.max(0, quota.max - use.stored - use.held)
  }

  private async take(organizationId: string, quota: Quota, amount: number, taken: Map<Use, Hold>): Promise<void> {
    const use = this.useOf(organizationId, quota)
    const before = taken.get(use)
    if (before !== undefined) drop(use, before)
    taken.delete(use)
    const isFull = (): boolean => use.stored + use.held + amount > quota.max
    if (isFull() || this.isOld(use, quota)) await this.recount(organizationId, quota, use)
    if (isFull()) throw exceeded(quota, use.stored + use.held, amount)
    const hold = { amount }
    use.holds.add(hold)
    use.held += amount
    taken.set(use, hold)
  }

  private useOf(organizationId: string, { name }: Quota): Use {
    const key = `${name} ${organizationId}`
    const known = this.uses.get(key)
    if (known !== undefined) return known
    const use = { stored: 0, countedAt: Number.NEGATIVE_INFINITY, holds: new Set<Hold>(), held: 0 }
    this.uses.set(key, use)
    return use
  }

  private isOld({ stored, held, countedAt, holds }: Use, { max }: Quota): boolean {
    const ageMs = this.services.clock.monotonic() - countedAt
    const isNear = stored + held > max * NEAR
    return (
      ageMs >= (isNear ? COUNT_AGAIN_NEAR_MS : COUNT_AGAIN_MS) ||
      (holds.size > HOLDS_MAX && ageMs >= COUNT_AGAIN_NEAR_MS)
    )
  }

  /** Counts again: a running count may have missed later deletions, so all callers wait for the next. */
  private recount(organizationId: string, quota: Quota, use: Use): Promise<void> {
    use.next ??= (use.counting ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => {
        use.next = undefined
        use.counting = this.count(organizationId, quota, use)
        return use.counting
      })
    return use.next
  }

  private async count(organizationId: string, quota: Quota, use: Use): Promise<void> {
    // Where nothing held is in the log, the place that the table has reached tells nothing.
    const reached = async (): Promise<number> => (hasLogged(use) ? this.through(quota) : -1)
    let through = await reached()
    for (let counts = 1; ; counts++) {
      const stored = await this.stored(organizationId, quota)
      const now = await reached()
      // Rows added to the table meanwhile may be both counted and held: counted again, they are one or the other.
      const isBetween = [...use.holds].some(({ position = -1 }) => position > through && position <= now)
      if (!isBetween || counts === COUNTS_MAX) {
        for (const hold of use.holds) if (hold.position !== undefined && hold.position <= through) drop(use, hold)
        use.stored = stored
        use.countedAt = this.services.clock.monotonic()
        return
      }
      through = now
    }
  }

  private async through({ consumer }: Quota): Promise<number> {
    return (await this.services.tables.checkpoint(consumer))?.all ?? -1
  }

  private async stored(organizationId: string, { name, table }: Quota): Promise<number> {
    const { tables } = this.services
    if (table !== undefined) return (await tables.find(table, organizationId, { limit: 1, total: true })).total ?? 0
    const row = await tables.get<UsesRow>(USES.name, organizationId, organizationId)
    return (row ?? NO_SUMS)[name as keyof typeof NO_SUMS] ?? 0
  }
}

/** Checks for room before files are stored for a command that takes it. @throws Failure quota */
export const assertRoom = async (
  quotas: Quotas | undefined,
  organizationId: string,
  name: string,
  amount: number,
): Promise<void> => {
  await quotas?.within(organizationId, async (take) => {
    await take(name, amount)
    return {}
  })
}

/** Runs a command within the quotas, if there are any. */
export const withinQuotas = <Done extends { wrote?: { position: number } }>(
  quotas: Quotas | undefined,
  organizationId: string,
  run: (take: TakePlace) => Promise<Done>,
): Promise<Done> => (quotas === undefined ? run(async () => undefined) : quotas.within(organizationId, run))

const hasLogged = ({ holds }: Use): boolean => {
  for (const { position } of holds) if (position !== undefined) return true
  return false
}

const drop = (use: Use, hold: Hold): void => {
  if (use.holds.delete(hold)) use.held -= hold.amount
}

const exceeded = ({ name, thing, max }: Quota, use: number, amount: number): Failure => {
  const more = amount === 1 ? '' : ` and ${amount} more were asked for`
  const message = `The organization may have ${max} ${thing} and has ${use}${more}: delete some, or ask the operator of this server for more.`
  return new Failure('quota', { message, extra: { limit: { name, max, use } } })
}
