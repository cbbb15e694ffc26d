import { eventsOf } from '../engines/event-log.ts'
import { AUDIT as AUDIT_TABLE, POINTS, RUNS, TRANSITIONS, TRIPS } from '../engines/clickhouse-sql/history-tables.ts'
import { AUDIT, auditedPrefixes } from '../features/audit/views.ts'
import { runsStream } from '../features/automations/events.ts'
import { locationStream } from '../features/locations/events.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { newestPointSince, newestPoints } from '../features/locations/history/streams.ts'
import { latestPositionCheckpoint } from '../features/locations/views.ts'
import { matcherCheckpoint, transitionStream } from '../features/transitions/events.ts'
import type { RecordedEvent } from '../kernel/event.ts'
import { rebuildProjection, type RebuildReport } from '../kit/consumers/rebuild-projection.ts'
import type { Services } from '../kit/services.ts'
import { severalAtOnce } from '../kit/commands/several-at-once.ts'
import { decodeTransition } from '../reactors/dispatch/owe.ts'
import { decideAgain } from '../reactors/matcher/decide-again.ts'
import { FenceBook } from '../reactors/matcher/fence-book.ts'
import { type AuditedEvent, auditBuffer } from '../../projections/audit-log.ts'
import { decisionBuffer, DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { Erased, eraseAfter } from '../../projections/erasures.ts'
import { historyCheckpoint } from '../../projections/history-checkpoints.ts'
import type { Placed } from '../../projections/history-consumer.ts'
import { rebuildHistory, type HistoryRebuild } from '../../projections/history-rebuild.ts'
import { isIndexed } from '../../projections/latest-restore.ts'
import { rebuildLatestPositions, type NewestPosition } from '../../projections/latest-rebuild.ts'
import { LATEST_POSITION } from '../../projections/latest-position.ts'
import { LOCATION_HISTORY, PointBuffer } from '../../projections/location-history.ts'
import { POINT_STEPS, PointSteps } from '../../projections/point-steps.ts'
import { decodeRuns, RUNS_HISTORY, runBuffer } from '../../projections/runs-history.ts'
import { AUDITED, PROJECTIONS } from '../product-parts.ts'
import { deletionsOf, positionsOf } from './newest-positions.ts'
import type { OperationServices } from './services.ts'

type Rebuild = (services: OperationServices, signal: AbortSignal) => Promise<RebuildReport>

const DAY_MS = 86_400_000
/** Rows may disappear from the history this long before their expiry. */
const EXPIRY_SLACK_MS = DAY_MS
const REACHED_LIMIT_MS = 60_000
const DIFFERENCES_MAX = 100
/** Partitions of the matcher decided again beside each other: they share fences, and each needs memory for its trackers. */
const PARTITIONS_AT_ONCE = 4
/** A report is one event of the log. */
const REPORT_BYTES_MAX = 256 * 1024

/** Rebuilds the read model with that name, from the log and stored data alone. @throws Error for an unknown name. */
export const rebuild = async (
  services: OperationServices,
  name: string,
  signal: AbortSignal,
): Promise<RebuildReport> => {
  const projection = PROJECTIONS.find((one) => one.name === name)
  if (projection !== undefined) return shortened(await rebuildProjection(projection, services, signal))
  if (!Object.hasOwn(OTHERS, name))
    throw new Error(`there is no projection ${name || '""'}; there are ${rebuildableNames().join(', ')}`)
  return shortened(await OTHERS[name](services, signal))
}

export const rebuildableNames = (): string[] => [...PROJECTIONS.map((one) => one.name), ...Object.keys(OTHERS)]

/** Whether the location log lacks points that latest positions have not seen, as after a loss of tables. */
export const lacksPositions = async ({ log, tables }: Services, partition: number): Promise<boolean> => {
  const [stored, [first]] = await Promise.all([
    tables.checkpoint(latestPositionCheckpoint(partition)),
    log.read(locationStream(partition), 0, 1),
  ])
  return first !== undefined && first.revision > (isIndexed(stored) ? (stored?.[partition] ?? -1) : -1) + 1
}

const rebuildPoints: Rebuild = async (services, signal) => {
  const { config, log, origin } = services
  const entries = storedEntries(services, LOCATION_HISTORY, locationStream, locationEntry, signal)
  const parts = historyRebuild(services, config.locationHistoryDays)
  const buffer = new PointBuffer(origin.epoch, await new Erased().read(log))
  return rebuildHistory(parts, LOCATION_HISTORY, [POINTS], buffer, entries)
}

const rebuildDecisions: Rebuild = async (services, signal) => {
  const { config, log, origin } = services
  const entries = storedEntries(services, DECISIONS_HISTORY, transitionStream, decodeTransition, signal)
  const parts = historyRebuild(services, config.locationHistoryDays)
  const buffer = decisionBuffer(origin.epoch, await new Erased().read(log))
  return rebuildHistory(parts, 'transitions', [TRANSITIONS, TRIPS], buffer, entries)
}

const rebuildRuns: Rebuild = async (services, signal) => {
  const { config, log, origin, history } = services
  const entries = storedEntries(services, RUNS_HISTORY, runsStream, decodeRuns, signal)
  const parts = historyRebuild(services, config.automationLogDays)
  const buffer = runBuffer(history, origin.epoch, await new Erased().read(log))
  return rebuildHistory(parts, RUNS_HISTORY, [RUNS], buffer, entries)
}

const rebuildAudit: Rebuild = async (services, signal) => {
  const parts = { ...historyRebuild(services, 0), since: 0 }
  const buffer = auditBuffer(AUDITED, await new Erased().read(services.log))
  return rebuildHistory(parts, AUDIT, [AUDIT_TABLE], buffer, auditedEvents(services, signal))
}

/** Events of the audited streams up to the audit log's checkpoint. */
async function* auditedEvents(
  { log, tables }: OperationServices,
  signal: AbortSignal,
): AsyncGenerator<Placed<AuditedEvent>> {
  const through = (await tables.checkpoint(AUDIT))?.all ?? -1
  const end = new AbortController()
  const either = AbortSignal.any([signal, end.signal])
  for await (const { events, checkpoint, caughtUp } of log.follow(
    { prefixes: auditedPrefixes(AUDITED) },
    undefined,
    either,
  )) {
    for (const event of events)
      if (event.position <= through) yield { partition: 0, entry: { revision: event.revision, event } }
    if (caughtUp || checkpoint >= through) end.abort()
  }
  signal.throwIfAborted()
}

/** Entries that a consumer has stored in the history and that the log still has. */
async function* storedEntries<Entry>(
  { log, tables, partitions }: OperationServices,
  consumer: string,
  streamOf: (partition: number) => string,
  decode: (event: RecordedEvent, partition: number) => Entry,
  signal: AbortSignal,
): AsyncGenerator<Placed<Entry>> {
  const stored = await historyCheckpoint(tables, consumer, partitions)
  for (let partition = 0; partition < partitions; partition++)
    for await (const event of eventsOf(log, streamOf(partition), 0, stored[partition] ?? -1, signal))
      yield { partition, entry: decode(event, partition) }
}

const rebuildLatest: Rebuild = (services, signal) => {
  const { log, tables, checkpoints, history, partitions, origin, owners } = services
  const names = Array.from({ length: partitions }, (_, partition) => latestPositionCheckpoint(partition))
  return rebuildLatestPositions({
    tables,
    partitions,
    epoch: origin.epoch,
    since: expiredBefore(services, services.config.locationHistoryDays),
    standsAt: async (partition) => (await tables.checkpoint(names[partition]))?.[partition] ?? -1,
    reaches: (partition, revision) =>
      checkpoints.reached(names[partition], { [partition]: revision }, REACHED_LIMIT_MS),
    whileNobodyFollows: (run) => owners.borrow(names, run),
    historyAt: async (partition) => (await historyCheckpoint(tables, LOCATION_HISTORY, partitions))[partition] ?? -1,
    newest: () => positionsOf(newestPoints(history, signal)),
    newestSince: ({ organizationId, trackerId }, place) =>
      firstOf(positionsOf(newestPointSince(history, { organizationId, trackerId, ...place }, signal))),
    deletions: (partition) => deletionsOf(log, partition, signal),
    entries: async function* (partition, from, through) {
      for await (const event of eventsOf(log, locationStream(partition), from, through, signal))
        yield locationEntry(event, partition)
    },
  })
}

const rebuildMatcher: Rebuild = async (services, signal) => {
  const { log, tables, clock, partitions } = services
  const report: Required<RebuildReport> = { projection: 'matcher', rows: 0, differing: 0, differences: [] }
  const decided: Required<RebuildReport>[] = []
  const book = new FenceBook(log)
  await severalAtOnce(Array(partitions).keys(), PARTITIONS_AT_ONCE, async (partition) => {
    const through = (await tables.checkpoint(matcherCheckpoint(partition)))?.[partition] ?? -1
    decided[partition] = await decideAgain({ log, tables, clock, book }, partition, through, signal)
  })
  for (const { rows, differing, differences } of decided) {
    report.rows += rows
    report.differing += differing
    report.differences.push(...differences.slice(0, DIFFERENCES_MAX - report.differences.length))
  }
  return report
}

/** Rolled-up points of reports. The service itself continues an interrupted rebuild. */
const rebuildSteps: Rebuild = async ({ history, clock, logger, config, owners }, signal) => {
  const steps = new PointSteps({ history, clock, logger, gapMs: config.tripGapMs })
  signal.addEventListener('abort', () => void steps.close(), { once: true })
  const rows = await owners.borrow([POINT_STEPS], () => steps.rebuild())
  signal.throwIfAborted()
  return { projection: POINT_STEPS, rows }
}

const OTHERS: { [name: string]: Rebuild } = {
  'location-history': rebuildPoints,
  transitions: rebuildDecisions,
  [RUNS_HISTORY]: rebuildRuns,
  [AUDIT]: rebuildAudit,
  [LATEST_POSITION]: rebuildLatest,
  [POINT_STEPS]: rebuildSteps,
  matcher: rebuildMatcher,
}

/** The report with as many differences as fit into an event. */
const shortened = (report: RebuildReport): RebuildReport => {
  const { differences = [] } = report
  if (differences.length === 0 || JSON.stringify(differences).length < REPORT_BYTES_MAX) return report
  return shortened({ ...report, differences: differences.slice(0, differences.length >> 1) })
}

const historyRebuild = (services: OperationServices, days: number): HistoryRebuild => ({
  history: services.history,
  mark: String(services.clock.now()),
  since: expiredBefore(services, days),
  eraseAgain: () => eraseAfter(services.log, services.history, -1),
})

const expiredBefore = ({ clock }: OperationServices, days: number): number =>
  Math.max(0, clock.now() - days * DAY_MS + EXPIRY_SLACK_MS)

const firstOf = async (positions: AsyncIterable<NewestPosition>): Promise<NewestPosition | undefined> => {
  for await (const position of positions) return position
  return undefined
}
