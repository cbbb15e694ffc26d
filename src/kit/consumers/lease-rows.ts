import { pagesOf, StaleCommit, type TableStore, type Taken } from '../../engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'

/** One row with the owner of each part, and one for each process with the names that it joins. */
const LEASES: TableDeclaration = { name: 'leases', version: 1, lives: 'partition' }
/** Scope of the rows, and the consumer that fences changes of leases: one with an older state changes nothing. */
const SCOPE = 'leases'
const HELD = 'held'
const MEMBER = 'member-'

const CHANGE_TRIES = 20
const PAGE_ROWS = 500
/** Prefix of the announcement that a process has changed leases; its name follows. */
const CHANGED = 'leases '

/** Owner of each part, by name. Nobody runs a borrowed part until the borrower is done or dies. */
export interface Held {
  owners: { readonly [name: string]: string }
  borrowed: { readonly [name: string]: string }
}

/** A process that takes part. */
export interface Member extends Row {
  /** The parts of an earlier life of the same node are free at once. */
  node: string
  /** Rises with each sign of life: no clock is compared between machines. */
  beat: number
  /** Silence after which others take it for dead; absent in rows of earlier versions. */
  lifeMs?: number
  /** Its connections bear its name, so that others who no longer see it know that it is gone. */
  isShown?: boolean
  joins: readonly string[]
}

export interface Leases {
  held: Held
  /** By owner. */
  members: ReadonlyMap<string, Member>
}

export type LeaseTables = Pick<
  TableStore,
  'declare' | 'find' | 'get' | 'commit' | 'take' | 'onLoss' | 'showAs' | 'shown' | 'tell' | 'hear'
>

/** As long as no later fence is taken, nobody else has changed what is whose. */
interface Owned extends Taken {
  held: Held
}

/** The stored leases. */
export class LeaseRows {
  private readonly tables: LeaseTables
  /** The fence of changes with the leases under it, until another process changes them. */
  private own: Promise<Owned> | undefined

  constructor(tables: LeaseTables) {
    this.tables = tables
  }

  declare(): Promise<void> {
    return this.tables.declare(LEASES)
  }

  async read(): Promise<Leases> {
    const members = new Map<string, Member>()
    let held = heldIn(undefined)
    for await (const page of pagesOf(this.tables, LEASES.name, SCOPE, { limit: PAGE_ROWS }))
      for (const { id, row } of page) {
        if (id === HELD) held = heldIn(row)
        else members.set(id.slice(MEMBER.length), row as Member)
      }
    return { held, members }
  }

  async held(): Promise<Held> {
    return heldIn(await this.tables.get(LEASES.name, SCOPE, HELD))
  }

  /** Has the others look at once; who does not hear it looks at his time. */
  async announce(owner: string): Promise<void> {
    await this.tables.tell?.(CHANGED + owner).catch(() => undefined)
  }

  /** Calls back whenever another process has changed what is whose, or comes with parts to do. */
  onAnnounced(owner: string, look: () => void): void {
    this.tables.hear?.((text) => {
      if (text.startsWith(CHANGED) && text !== CHANGED + owner) look()
    })
  }

  /** Gives a sign of life. */
  sign(owner: string, member: Member): Promise<void> {
    return this.tables.commit([change(MEMBER + owner, member)])
  }

  /** Shows others that this process is connected; answers whether they can see that. */
  async show(owner: string): Promise<boolean> {
    if (this.tables.showAs === undefined) return false
    return this.tables.showAs(owner).then(
      () => true,
      () => false, // a user without that right: only the silence tells
    )
  }

  /** The connected processes; none where servers do not tell. */
  async shown(): Promise<ReadonlySet<string>> {
    return (await this.tables.shown?.().catch(() => undefined)) ?? new Set()
  }

  /** Has the next change cost one call, unless another process changes something before. */
  prepare(): void {
    this.own ??= this.take()
    this.own.catch(() => undefined) // the change says so
  }

  /** Changes whose everything is, by what it is at that moment, and forgets the dead; answers what it is then. */
  async change(edit: (held: Held) => Held, dead: readonly string[]): Promise<Held> {
    for (let tries = 1; ; tries++) {
      this.own ??= this.take()
      try {
        const { at, fence, held: before } = await this.own
        const held = edit(before)
        const rows = [change(HELD, { ...held }), ...dead.map((owner) => change(MEMBER + owner, null))]
        await this.tables.commit(rows, { consumer: SCOPE, from: at, fence })
        this.own = Promise.resolve({ at, fence, held })
        return held
      } catch (error) {
        this.own = undefined
        if (!(error instanceof StaleCommit) || tries === CHANGE_TRIES) throw error
      }
    }
  }

  private async take(): Promise<Owned> {
    const taken = await this.tables.take(SCOPE)
    return { ...taken, held: await this.held() }
  }
}

const change = (id: string, row: Row | null): RowChange => ({ table: LEASES.name, scope: SCOPE, id, row })

const heldIn = (row: Row | undefined): Held => ({ owners: {}, borrowed: {}, ...(row as Partial<Held> | undefined) })

/** Whether another process may now take something that it could not take before, or must leave something. */
export const frees = (before: Held, after: Held): boolean =>
  !isSameMap(before.borrowed, after.borrowed) ||
  Object.keys(before.owners).some((name) => after.owners[name] !== before.owners[name])

export const isSameHeld = (one: Held, other: Held): boolean =>
  isSameMap(one.owners, other.owners) && isSameMap(one.borrowed, other.borrowed)

const isSameMap = (one: Held['owners'], other: Held['owners']): boolean => {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}
