import { Follower, type IsOurs, type Lag } from './follower.ts'
import type { Owned } from './owners.ts'
import { ProjectedRows } from './projection-overlay.ts'
import { type Projection, type ProjectionServices, staleParts, tablesOf, versionsOf } from './projection.ts'
import { buildBeside, promoteBeside } from './rebuild-projection.ts'
import { untilDone } from './retry.ts'

const BATCH_EVENTS_MAX = 512

/** One projection while this process owns it: a loop of its own, so that a slow or failing one holds up no other. */
export class RunningProjection implements Owned {
  readonly name: string
  private readonly projection: Projection
  private readonly services: ProjectionServices
  private running: { follower: Follower; begun: Promise<void>; end: AbortController } | undefined

  constructor(projection: Projection, services: ProjectionServices) {
    this.name = projection.name
    this.projection = projection
    this.services = services
  }

  /** Declares the tables and begins; lost tables, or those of another version, are built beside the live ones first. */
  async take(isOurs?: IsOurs): Promise<void> {
    const { tables } = this.services
    await Promise.all(tablesOf(this.projection).map((table) => tables.declare(table)))
    const stored = await tables.checkpoint(this.name)
    const { isBuiltOnce = false } = this.projection
    const mustBeBuilt =
      (isBuiltOnce && stored === undefined) || this.projection.tables.some(({ name }) => tables.isLost(name))
    const stale = mustBeBuilt ? this.projection : stored && staleParts(this.projection, stored)
    const end = new AbortController()
    const follower = projectionFollower(this.projection, { ...this.services, isOurs })
    const begun =
      stale === undefined ? Promise.resolve() : this.renewed(stale, mustBeBuilt ? undefined : stored?.all, end.signal)
    const follow = (): void => void (end.signal.aborted || isBuiltOnce || follower.start(tables))
    this.running = { follower, begun: begun.then(follow), end }
  }

  async leave(): Promise<void> {
    const { running } = this
    this.running = undefined
    running?.end.abort()
    await running?.begun
    await running?.follower.close()
  }

  /** Resolves when it has applied the events in the log when it was taken, or is another process's. */
  async ready(): Promise<void> {
    const { running } = this
    await running?.begun
    if (this.projection.isBuiltOnce === true) return
    await running?.follower.ready().catch((error: unknown) => {
      if (this.running === running) throw error
    })
  }

  lags(): Lag[] {
    return this.running === undefined || this.projection.isBuiltOnce === true
      ? []
      : [this.running.follower.lag(this.services.clock.now())]
  }

  /** Builds the tables up to the position of the others. */
  private renewed(stale: Projection, at: number | undefined, signal: AbortSignal): Promise<void> {
    const { name, services } = this
    const { clock, logger, tables } = services
    const renew = async (): Promise<void> => {
      const builtThrough = await buildBeside(stale, services, signal, at, tables.catchUpRowsMax)
      await promoteBeside(stale, tables)
      if (builtThrough !== undefined && builtThrough >= 0)
        logger.info('projection was built anew', { projection: name, tables: stale.tables.map((table) => table.name) })
    }
    const onFailure = (error: unknown): void =>
      signal.aborted
        ? undefined
        : logger.error('projection is not built anew', { projection: name, error: String(error) })
    return untilDone(renew, { clock, signal, onFailure })
  }
}

/** Follows the log for one projection: each portion of rows is committed together with the position in the log. */
const projectionFollower = (projection: Projection, services: ProjectionServices & { isOurs?: IsOurs }): Follower => {
  let rows = new ProjectedRows(projection, services.tables)
  const { catchUpRowsMax } = services.tables
  let isCatchingUp = true
  return new Follower(services, {
    name: projection.name,
    versions: versionsOf(projection),
    source: { prefixes: projection.prefixes },
    batchEventsMax: BATCH_EVENTS_MAX,
    begin: async () => {
      rows = new ProjectedRows(projection, services.tables)
    },
    handle: async ({ events, caughtUp }, _signal, isStoring) => {
      await rows.apply(events)
      // A stretch without inputs is passed over once and for all.
      const mayGoOn = isCatchingUp ? rows.hasInputs && !rows.areMany(catchUpRowsMax) : isStoring() && !rows.areMany()
      if (!caughtUp && events.length > 0 && mayGoOn) return 'later'
      if (caughtUp) isCatchingUp = false
      // Callers that wait for an input wait for the checkpoint, also where the input changed no row.
      return rows.take()
    },
  })
}
