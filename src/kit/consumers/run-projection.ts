import type { TableStore } from '../../engines/table-store.ts'
import type { RowChange } from '../../kernel/table.ts'
import { Follower, type Lag } from './follower.ts'
import { applyBatch } from './projection-overlay.ts'
import { type Projection, type ProjectionServices, staleParts, versionsOf } from './projection.ts'
import { buildBeside, compareTables, continueBeside, promoteBeside, type RebuildReport } from './rebuild-projection.ts'

/** Hears what was committed, after the commit. Must not throw. */
export type CommittedListener = (changes: readonly RowChange[], projection: string) => void

const BATCH_EVENTS_MAX = 512

/** Runs projections in this process: one loop each, so that a slow or failing one holds up no other. */
export class ProjectionRunner {
  private readonly services: ProjectionServices
  private readonly loops = new Map<string, { projection: Projection; follower: Follower }>()
  private readonly listeners = new Set<CommittedListener>()
  private readonly abort = new AbortController()
  private readonly starting: Promise<void>[] = []

  constructor(services: ProjectionServices, projections: readonly Projection[]) {
    this.services = services
    for (const projection of projections)
      this.loops.set(projection.name, { projection, follower: projectionFollower(projection, services) })
  }

  /** Declares the tables and begins; what is of another version than the stored one is built anew beside the live tables first. */
  async start(): Promise<void> {
    for (const { projection, follower } of this.loops.values()) {
      for (const table of projection.tables) await this.services.tables.declare(table)
      const stored = await this.services.tables.checkpoint(projection.name)
      const stale = stored === undefined ? undefined : staleParts(projection, stored)
      if (stale === undefined) follower.start(this.heardTables(projection))
      else this.starting.push(this.renew(stale, stored?.all, follower))
    }
  }

  /** Resolves when every projection has applied what was in the log at the start. */
  async ready(): Promise<void> {
    await Promise.all(this.starting)
    await Promise.all([...this.loops.values()].map(({ follower }) => follower.ready()))
  }

  get names(): string[] {
    return [...this.loops.keys()]
  }

  runs(projection: string): boolean {
    return this.loops.has(projection)
  }

  onCommitted(listener: CommittedListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  lags(): Lag[] {
    const now = this.services.clock.now()
    return [...this.loops.values()].map(({ follower }) => follower.lag(now))
  }

  /**
   * Builds the tables of a projection anew beside the live ones and swaps them. With `compare` the live loop stands
   * still while both are compared at the same place of the log, and the report names the rows that differ.
   */
  async rebuild(
    name: string,
    { compare = false, signal = this.abort.signal }: { compare?: boolean; signal?: AbortSignal } = {},
  ): Promise<RebuildReport> {
    const loop = this.loops.get(name)
    if (loop === undefined) throw new Error(`no projection ${name} runs here`)
    const { projection, follower } = loop
    const ended = AbortSignal.any([this.abort.signal, signal])
    await follower.ready()
    const from = await buildBeside(projection, this.services, ended, follower.at)
    return follower.exclusively(async () => {
      await continueBeside(projection, this.services, ended, from, follower.at)
      const report = compare
        ? await compareTables(projection, this.services.tables)
        : { projection: name, rows: await this.countBeside(projection) }
      await promoteBeside(projection, this.services.tables)
      follower.replaced()
      return report
    })
  }

  async close(): Promise<void> {
    this.abort.abort()
    await Promise.allSettled(this.starting)
    await Promise.all([...this.loops.values()].map(({ follower }) => follower.close()))
  }

  /** Builds the tables up to the place at which the others stand. */
  private async renew(projection: Projection, at: number | undefined, follower: Follower): Promise<void> {
    const tables = projection.tables.map(({ name }) => name)
    this.services.logger.info('projection is built anew', { projection: projection.name, tables })
    await buildBeside(projection, this.services, this.abort.signal, at)
    await promoteBeside(projection, this.services.tables)
    follower.start(this.heardTables(projection))
  }

  private heardTables({ name }: Projection): Pick<TableStore, 'take' | 'commit'> {
    const { tables } = this.services
    return {
      take: (consumer) => tables.take(consumer),
      commit: async (changes, move) => {
        await tables.commit(changes, move)
        if (changes.length > 0) for (const listener of this.listeners) listener(changes, name)
      },
    }
  }

  private async countBeside(projection: Projection): Promise<number> {
    let rows = 0
    for (const { name } of projection.tables)
      for await (const _row of this.services.tables.scanAll(`${name}@next`)) rows++
    return rows
  }
}

/** Follows the log for one projection: each batch of rows is committed together with the place in the log. */
const projectionFollower = (projection: Projection, services: ProjectionServices): Follower => {
  const inputs = new Set(projection.inputs)
  return new Follower(services, {
    name: projection.name,
    versions: versionsOf(projection),
    source: { prefixes: projection.prefixes },
    batchEventsMax: BATCH_EVENTS_MAX,
    handle: async ({ events }) => {
      const changes = await applyBatch(projection, inputs, events, services.tables)
      // Whoever waits for an input waits for the checkpoint, also where the input changed no row.
      return events.some(({ type }) => inputs.has(type)) ? changes : undefined
    },
  })
}
