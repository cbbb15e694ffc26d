import { pagesOf, StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'

/** One row with the owner of each part, and one for each process with the names that it joins. */
const LEASES: TableDeclaration = { name: 'leases', version: 1, lives: 'partition' }
/** Scope of the rows, and the consumer that fences changes of leases: one with an older state changes nothing. */
const SCOPE = 'leases'
const HELD = 'held'
const MEMBER = 'member-'
/** Scope and row of the mark of the last change, apart from the others: read far more often. */
const CHANGES = 'lease-changes'
const LAST = 'last'

const CHANGE_TRIES = 20
const PAGE_ROWS = 500

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

interface ChangeRow extends Row {
  mark: string
}

export interface Leases {
  held: Held
  /** By owner. */
  members: ReadonlyMap<string, Member>
}

export type LeaseTables = Pick<
  TableStore,
  'declare' | 'find' | 'get' | 'commit' | 'take' | 'onLoss' | 'showAs' | 'shown'
>

/** The stored rows of the leases. */
export class LeaseRows {
  private readonly tables: LeaseTables

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

  /** The mark of the last change that others should learn of soon. */
  async lastChange(): Promise<string | undefined> {
    return (await this.tables.get<ChangeRow>(LEASES.name, CHANGES, LAST))?.mark
  }

  announce(mark: string): Promise<void> {
    const row: ChangeRow = { mark }
    return this.tables.commit([{ table: LEASES.name, scope: CHANGES, id: LAST, row }])
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

  /** Changes the owners from their present state, and forgets the dead; answers the new state. */
  async change(edit: (held: Held) => Held, dead: readonly string[]): Promise<Held> {
    for (let tries = 1; ; tries++) {
      const { at, fence } = await this.tables.take(SCOPE)
      const held = edit(await this.held())
      const rows = [change(HELD, { ...held }), ...dead.map((owner) => change(MEMBER + owner, null))]
      try {
        await this.tables.commit(rows, { consumer: SCOPE, from: at, fence })
        return held
      } catch (error) {
        if (!(error instanceof StaleCommit) || tries === CHANGE_TRIES) throw error
      }
    }
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
