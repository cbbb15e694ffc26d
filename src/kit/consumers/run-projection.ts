import type { RowChange } from '../../kernel/table.ts'
import { defer } from './deferred.ts'
import { ProjectionLoop, type ProjectionServices } from './projection-loop.ts'
import type { Projection } from './projection.ts'
import { buildBeside, compareTables, continueBeside, promoteBeside, type RebuildReport } from './rebuild-projection.ts'

export interface ProjectionLag {
  consumer: string
  /** Positions of the log that are not applied; foreign events count while it is behind. */
  events: number
  seconds: number
}

/** Hears what was committed, after the commit. Must not throw. */
export type CommittedListener = (changes: readonly RowChange[], projection: string) => void

interface Waiter {
  projection: string
  position: number
  resolve: () => void
}

/** Runs projections in this process: one loop each, so that a slow or failing one holds up no other. */
export class ProjectionRunner {
  private readonly services: ProjectionServices
  private readonly loops = new Map<string, ProjectionLoop>()
  private readonly listeners = new Set<CommittedListener>()
  private readonly waiters = new Set<Waiter>()
  private readonly abort = new AbortController()
  private readonly starting: Promise<void>[] = []

  constructor(services: ProjectionServices, projections: readonly Projection[]) {
    this.services = services
    const advanced = (name: string, position: number, changes: readonly RowChange[]): void =>
      this.advanced(name, position, changes)
    for (const projection of projections)
      this.loops.set(projection.name, new ProjectionLoop(projection, services, advanced))
  }

  /** Declares the tables and begins; a projection of another version than the stored one is built anew beside the live tables first. */
  async start(): Promise<void> {
    for (const loop of this.loops.values()) {
      const { projection } = loop
      for (const table of projection.tables) await this.services.tables.declare(table)
      const stored = await this.services.tables.checkpoint(projection.name)
      if (stored === undefined || stored.version === projection.version) loop.start(stored?.all)
      else this.starting.push(this.renew(loop))
    }
  }

  /** Resolves when every projection has applied what was in the log at the start. */
  async ready(): Promise<void> {
    await Promise.all(this.starting)
    await Promise.all([...this.loops.values()].map((loop) => loop.ready()))
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

  /** Resolves when the projection has applied everything up to the position; the answer of `cancel` gives up waiting. */
  whenApplied(projection: string, position: number): { applied: Promise<void>; cancel: () => void } {
    const at = this.loops.get(projection)?.at
    if (at !== undefined && at >= position) return { applied: Promise.resolve(), cancel: () => undefined }
    const { promise, resolve } = defer<void>()
    const waiter = { projection, position, resolve }
    this.waiters.add(waiter)
    return { applied: promise, cancel: () => this.waiters.delete(waiter) }
  }

  async lags(): Promise<ProjectionLag[]> {
    const head = await this.services.log.headPosition()
    const now = this.services.clock.now()
    return [...this.loops.values()].map(({ projection, at, behindSince }) => ({
      consumer: projection.name,
      events: behindSince === undefined ? 0 : Math.max(0, head - (at ?? -1)),
      seconds: behindSince === undefined ? 0 : Math.max(0, (now - behindSince) / 1000),
    }))
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
    const { projection } = loop
    const ended = AbortSignal.any([this.abort.signal, signal])
    await loop.ready()
    const from = await buildBeside(projection, this.services, ended, loop.at)
    return loop.exclusively(async () => {
      await continueBeside(projection, this.services, ended, from, loop.at)
      const report = compare
        ? await compareTables(projection, this.services.tables)
        : { projection: name, rows: await this.countBeside(projection) }
      await promoteBeside(projection, this.services.tables)
      loop.replaced()
      return report
    })
  }

  async close(): Promise<void> {
    this.abort.abort()
    await Promise.allSettled(this.starting)
    await Promise.all([...this.loops.values()].map((loop) => loop.close()))
  }

  private async renew(loop: ProjectionLoop): Promise<void> {
    const { projection } = loop
    this.services.logger.info('projection is built anew', { projection: projection.name, version: projection.version })
    const at = await buildBeside(projection, this.services, this.abort.signal)
    await promoteBeside(projection, this.services.tables)
    loop.start(at)
  }

  private async countBeside(projection: Projection): Promise<number> {
    let rows = 0
    for (const { name } of projection.tables)
      for await (const _row of this.services.tables.scanAll(`${name}@next`)) rows++
    return rows
  }

  private advanced(name: string, position: number, changes: readonly RowChange[]): void {
    if (changes.length > 0) for (const listener of this.listeners) listener(changes, name)
    for (const waiter of this.waiters) {
      if (waiter.projection !== name || waiter.position > position) continue
      this.waiters.delete(waiter)
      waiter.resolve()
    }
  }
}
