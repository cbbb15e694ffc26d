import type { Config } from '../config.ts'
import { locationStream } from '../features/locations/events.ts'
import { newestPointSince, newestPoints } from '../features/locations/history/streams.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { RebuildReport } from '../kit/consumers/rebuild-projection.ts'
import type { ProjectionRunner } from '../kit/consumers/run-projection.ts'
import type { Services } from '../kit/services.ts'
import { decideAgain } from '../reactors/matcher/decide-again.ts'
import type { GeofenceMatcher } from '../reactors/matcher/match-geofences.ts'
import { DECISIONS_HISTORY, type DecisionsHistory } from '../../projections/decisions-history.ts'
import { historyCheckpoint } from '../../projections/history-checkpoints.ts'
import {
  rebuildDecisionsHistory,
  rebuildLocationHistory,
  type HistoryRebuild,
} from '../../projections/history-rebuild.ts'
import type { LatestPositions } from '../../projections/latest-position.ts'
import { latestCheckpoint } from '../../projections/latest-restore.ts'
import { rebuildLatestPositions, type NewestPosition } from '../../projections/latest-rebuild.ts'
import { LOCATION_HISTORY, type LocationHistory } from '../../projections/location-history.ts'
import type { InTurn } from './in-turn.ts'
import { deletionsOf, positionsOf } from './newest-positions.ts'
import { locationEntries, transitionEntries } from './stream-entries.ts'

export interface RebuildParts {
  config: Pick<Config, 'locationHistoryDays'>
  services: Services
  origin: LogOrigin
  runner: ProjectionRunner
  matcher: GeofenceMatcher
  latest: LatestPositions
  locationHistory: LocationHistory
  decisionsHistory: DecisionsHistory
  turns: InTurn
}

export type Rebuild = (name: string) => Promise<RebuildReport>

const DAY_MS = 86_400_000
/** Before a row expires from the history it may already be on its way out. */
const EXPIRY_SLACK_MS = DAY_MS

/** Everything that can be built anew, by the name under which operators know it. */
export const openRebuilds = (parts: RebuildParts): Rebuild => {
  const { runner, turns } = parts
  const others: { [name: string]: () => Promise<RebuildReport> } = {
    'location-history': () => rebuildPoints(parts),
    transitions: () => rebuildDecisions(parts),
    'latest-position': () => rebuildLatest(parts),
    matcher: () => rebuildMatcher(parts),
  }
  return async (name) => {
    if (runner.runs(name)) return turns.run(() => runner.rebuild(name, { compare: true, signal: turns.signal }))
    if (!Object.hasOwn(others, name))
      throw new Error(
        `there is no projection ${name || '""'}; there are ${[...runner.names, ...Object.keys(others)].join(', ')}`,
      )
    return turns.run(others[name])
  }
}

/** Whether the location log no longer has what the latest positions have not seen, as after their tables were lost. */
export const lacksPositions = async ({ log, tables, partitions }: Services): Promise<boolean> => {
  const stored = await latestCheckpoint(tables, partitions)
  for (let partition = 0; partition < partitions; partition++) {
    const [first] = await log.read(locationStream(partition), 0, 1)
    if (first !== undefined && first.revision > (stored[partition] ?? -1) + 1) return true
  }
  return false
}

const rebuildPoints = async ({
  config,
  services,
  origin,
  locationHistory,
  turns,
}: RebuildParts): Promise<RebuildReport> => {
  const { log, partitions } = services
  await locationHistory.flush()
  const stored = await historyCheckpoint(services.tables, LOCATION_HISTORY, partitions)
  async function* entries() {
    for (let partition = 0; partition < partitions; partition++)
      yield* locationEntries(log, partition, 0, stored[partition] ?? -1, turns.signal)
  }
  return rebuildLocationHistory(historyRebuild(services, config), origin.epoch, entries())
}

const rebuildDecisions = async ({
  config,
  services,
  origin,
  decisionsHistory,
  turns,
}: RebuildParts): Promise<RebuildReport> => {
  const { log, partitions } = services
  await decisionsHistory.flush()
  const stored = await historyCheckpoint(services.tables, DECISIONS_HISTORY, partitions)
  async function* entries() {
    for (let partition = 0; partition < partitions; partition++)
      yield* transitionEntries(log, partition, stored[partition] ?? -1, turns.signal)
  }
  return rebuildDecisionsHistory(historyRebuild(services, config), origin.epoch, entries())
}

const rebuildLatest = ({ config, services, origin, latest, turns }: RebuildParts): Promise<RebuildReport> => {
  const { log, tables, history, clock, partitions } = services
  const { signal } = turns
  return rebuildLatestPositions({
    latest,
    tables,
    clock,
    partitions,
    epoch: origin.epoch,
    since: expiredBefore(services, config),
    signal,
    historyAt: async (partition) => (await historyCheckpoint(tables, LOCATION_HISTORY, partitions))[partition] ?? -1,
    newest: () => positionsOf(newestPoints(history, signal)),
    newestSince: ({ organizationId, trackerId }, place) =>
      firstOf(positionsOf(newestPointSince(history, { organizationId, trackerId, ...place }, signal))),
    deletions: (partition) => deletionsOf(log, partition, signal),
    entries: (partition, from, through) => locationEntries(log, partition, from, through, signal),
  })
}

const rebuildMatcher = async ({ services, matcher, turns }: RebuildParts): Promise<RebuildReport> => {
  const report: Required<RebuildReport> = { projection: matcher.name, rows: 0, differing: 0, differences: [] }
  for (let partition = 0; partition < services.partitions; partition++) {
    const { rows, differing, differences } = await decideAgain(services, matcher, partition, turns.signal)
    report.rows += rows
    report.differing += differing
    report.differences.push(...differences.slice(0, 100 - report.differences.length))
  }
  return report
}

const historyRebuild = (services: Services, config: RebuildParts['config']): HistoryRebuild => ({
  history: services.history,
  mark: String(services.clock.now()),
  since: expiredBefore(services, config),
})

const expiredBefore = ({ clock }: Services, { locationHistoryDays }: RebuildParts['config']): number =>
  Math.max(0, clock.now() - locationHistoryDays * DAY_MS + EXPIRY_SLACK_MS)

const firstOf = async (positions: AsyncIterable<NewestPosition>): Promise<NewestPosition | undefined> => {
  for await (const position of positions) return position
  return undefined
}
