import { auditFollower } from '../../projections/audit-log.ts'
import { DecisionsHistory } from '../../projections/decisions-history.ts'
import { HistoryErasures } from '../../projections/erasures.ts'
import { LATEST_POSITION, LatestPositions } from '../../projections/latest-position.ts'
import { LocationHistory } from '../../projections/location-history.ts'
import { RUNS_HISTORY, RunsHistory } from '../../projections/runs-history.ts'
import { AUDIT } from '../features/audit/views.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { type Owned, ownedPart, ownedPartitions } from '../kit/consumers/owners.ts'
import { RunningProjection } from '../kit/consumers/run-projection.ts'
import { LogConsumers } from '../reactors/sweep/log-consumers.ts'
import { askUpkeep, upkeepEnd } from '../reactors/upkeep/upkeep.ts'
import { lacksPositions } from '../operations/rebuilds.ts'
import { KEEPING_LOCATIONS } from '../operations/upkeep.ts'
import { AUDITED } from '../product-parts.ts'
import type { OpenRole, RoleServices } from './role.ts'

/** Turns events into rows: the tables, the latest positions and the history. */
export const openProjector: OpenRole = async (services) => {
  const { tables, history, clock, logger, partitions, owners, origin, feeds, projections } = services
  const failed = (consumer: string) => (error: unknown) =>
    logger.error('consumer failed', { consumer, error: String(error), cause: String((error as Error).cause) })
  const latest = new LatestPositions({ tables, clock, partitions, onFailure: failed('latest-position') })
  const erasures = new HistoryErasures(services)
  const archive = { history, tables, clock, erasures, epoch: origin.epoch, life: services.life.id }
  const points = new LocationHistory({ ...archive, onFailure: failed('location-history') })
  const decisions = new DecisionsHistory({ ...archive, onFailure: failed('decisions-history') })
  const runs = new RunsHistory({ ...archive, onFailure: failed(RUNS_HISTORY) })
  const running = projections.map((projection) => new RunningProjection(projection, services))
  const [tablesJoined, register] = await Promise.all([
    owners.join(running),
    new LogConsumers(services, KEEPING_LOCATIONS).sayRunning(),
    erasures.start(),
  ])
  await Promise.all(running.map((projection) => projection.ready()))
  const mender = new PositionMender(services)
  let audit: Follower | undefined
  const joined = await owners.join([
    ownedPart(AUDIT, async (isOurs) => {
      audit = auditFollower({
        ...services,
        isOurs,
        erasures,
        epoch: origin.epoch,
        life: services.life.id,
        nouns: AUDITED,
      }).start(tables)
      return audit
    }),
    ...mender.watching(ownedPartitions(feeds.locations, latest, partitions)),
    ...ownedPartitions(feeds.locations, points, partitions),
    ...ownedPartitions(feeds.transitions, decisions, partitions),
    ...ownedPartitions(feeds.runs, runs, partitions),
  ])
  return {
    ready: mender.ended,
    lags: () => [
      ...running.flatMap((projection) => projection.lags()),
      ...(audit === undefined ? [] : [audit.lag(clock.now())]),
    ],
    close: async () => {
      mender.giveUp()
      register.close()
      await Promise.all([joined, tablesJoined].map((one) => one.leave()))
      await latest.close()
      await points.close()
      await decisions.close()
      await runs.close()
      await erasures.close()
    },
  }
}

/** After a loss of the tables, rebuilds the latest positions from the history: the log no longer has them all. */
class PositionMender {
  private readonly services: RoleServices
  private readonly end = new AbortController()
  private mending: Promise<void> | undefined

  constructor(services: RoleServices) {
    this.services = services
  }

  /** Resolves when all requested rebuilds are done. */
  get ended(): Promise<void> {
    return this.mending ?? Promise.resolve()
  }

  /** The partitions, each checked before it is followed. */
  watching(owned: readonly Owned[]): Owned[] {
    return owned.map((one, partition) => ({
      ...one,
      take: async (isOurs) => {
        if (await lacksPositions(this.services, partition)) this.mending ??= this.mend()
        await one.take(isOurs)
      },
    }))
  }

  giveUp(): void {
    this.end.abort()
  }

  private async mend(): Promise<void> {
    try {
      const asked = await askUpkeep(this.services, { task: 'rebuild', name: LATEST_POSITION })
      await upkeepEnd(this.services, asked, this.end.signal)
    } catch (error) {
      this.services.logger.error('the latest positions are not whole', { error: String(error) })
    } finally {
      this.mending = undefined
    }
  }
}
