import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import type { ActionTypes } from '../features/automations/action-type.ts'
import { showAutomation } from '../features/automations/declaration.ts'
import { showRun } from '../features/automations/run-shown.ts'
import { AUTOMATION_RUNS, type RunRow } from '../features/automations/views.ts'
import { tripToken } from '../features/locations/trip-token.ts'
import { LATEST_POSITIONS, type LatestPoint, type LatestPositionRow } from '../features/locations/views.ts'
import type { Decision } from '../features/transitions/events.ts'
import { transitionShown } from '../features/transitions/views.ts'
import { tripRow, tripShown } from '../features/trips/views.ts'
import { Failure } from '../kernel/errors.ts'
import type { RowChange } from '../kernel/table.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { automationFeed } from '../live/automation-feed.ts'
import { LiveHub } from '../live/hub.ts'
import { jobFeed } from '../live/job-feed.ts'
import { AUTOMATION_RUNS_PROJECTION } from '../../projections/automation-runs.ts'
import { latestCheckpoint } from '../../projections/latest-restore.ts'
import { factsOf, trackerLookups } from './lookups.ts'

/** How long a run that has just changed may take to its row. */
const APPLIED_LIMIT_MS = 5_000

/** The live view, with what it takes from tables when somebody begins to look. */
export const openLive = (
  config: Config,
  { log, tables, checkpoints, clock, logger, keyring, partitions }: Services,
  origin: LogOrigin,
  metrics: Metrics,
  actions: ActionTypes,
): LiveHub =>
  new LiveHub({
    log,
    partitions,
    logMark: createHash('sha256').update(`${origin.logId}:${origin.epoch}`).digest().readUInt32BE(0),
    ages: { staleAfterMs: config.staleAfterMs, offlineAfterMs: config.offlineAfterMs },
    clock,
    logger,
    onConflated: (count) => metrics.liveConflated.inc(count),
    sources: {
      latestPoints: async (organizationId) => {
        const keptUpTo = await latestCheckpoint(tables, partitions)
        return { points: latestPoints(tables, organizationId), keptUpTo }
      },
      trackers: (organizationId) => trackerLookups(tables).trackerFacts(organizationId),
      decode: locationEntry,
      eventOf: (decision) => eventOf(decision, (trackerId, startedAt) => tripToken(keyring, trackerId, startedAt)),
      runs: async (organizationId, runIds, position) => {
        if (!(await checkpoints.reached(AUTOMATION_RUNS_PROJECTION, { all: position }, APPLIED_LIMIT_MS)))
          throw new Failure('engine_down', { message: `${AUTOMATION_RUNS_PROJECTION} is behind.` })
        return tables.getMany<RunRow>(AUTOMATION_RUNS.name, organizationId, runIds)
      },
      runShown: (row) => showRun(keyring, row),
      automationShown: (row) => showAutomation({ actions, keyring }, row),
    },
  })

/** Tells of what no partition's stream has: jobs and automations. */
export const openLiveFeeds = async (hub: LiveHub) => {
  const feeds = [await jobFeed(hub), await automationFeed(hub)]
  return {
    close: async (): Promise<void> => {
      for (const feed of feeds) await feed.close()
    },
  }
}

/** Tells the live view of trackers that were made, renamed or moved. */
export const noteTrackers = (hub: LiveHub, changes: readonly RowChange[]): void => {
  for (const { table, scope, id, row } of changes)
    if (table === 'trackers' && row !== null) hub.trackerChanged(scope, id, factsOf(row))
}

async function* latestPoints(tables: Services['tables'], organizationId: string): AsyncGenerator<LatestPoint> {
  for await (const { row } of tables.scan<LatestPositionRow>(LATEST_POSITIONS.name, organizationId)) yield row
}

const eventOf = (decision: Decision, tokenOf: (trackerId: string, startedAt: number) => string): object =>
  decision.kind === 'transition'
    ? transitionShown(decision)
    : tripShown(tripRow(decision), tokenOf(decision.trackerId, decision.startedAt))
