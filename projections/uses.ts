import {
  GEOFENCE_CHANGED,
  GEOFENCE_CREATED,
  GEOFENCE_DELETED,
  GEOFENCE_PREFIX,
} from '../src/features/geofences/events.ts'
import type { ExportResult } from '../src/features/exports/events.ts'
import { EXPORT } from '../src/features/exports/views.ts'
import type { ImportResult } from '../src/features/imports/events.ts'
import { IMPORT } from '../src/features/imports/views.ts'
import { positionsOf, type ShapeInput } from '../src/geo/shape.ts'
import { categoryOf, dataOf, type RecordedEvent } from '../src/kernel/event.ts'
import type { JsonObject } from '../src/kernel/json.ts'
import type { Row } from '../src/kernel/table.ts'
import { eventTypes } from '../src/kit/commands/declared-event.ts'
import type { Rows } from '../src/kit/consumers/projection.ts'
import { bytesOf, newBytes, storedFiles } from '../src/kit/files/stored-files.ts'
import { NO_SUMS, type Sum, USES, USES_OF_ONE, type UsesRow } from '../src/kit/quotas/uses.ts'
import type { DirectoryPart } from './directory.ts'

interface UseOfOne extends Row {
  amount: number
  /** Position of the event from which it was computed. */
  position: number
  /** Files that an add-on has had so far: their keys tell those of its next version from them. */
  named?: JsonObject
}

interface Data {
  organizationId: string
  values?: JsonObject
  shape?: ShapeInput
  changes?: { shape?: ShapeInput }
}

const WITH_FILES = ['task', 'data', 'addon', 'organization']
/** Jobs whose files stay as long as they do. */
const JOBS = [EXPORT, IMPORT]
const ADDON = 'addon'
const EMPTY = { ...NO_SUMS, withFiles: 0 }

/**
 * Sums of each organization that are not counted by rows of a table: positions of geofences, bytes of files. Every sum
 * is made of the shares of its records, and both are stored at once, so that an event applied twice counts once.
 */
export const usesRows: DirectoryPart = {
  tables: [USES, USES_OF_ONE],
  prefixes: [GEOFENCE_PREFIX, ...WITH_FILES.map((noun) => `${noun}-`), ...JOBS.map(({ prefix }) => prefix)],
  inputs: [
    ...[GEOFENCE_CREATED, GEOFENCE_CHANGED, GEOFENCE_DELETED],
    ...WITH_FILES.flatMap((noun) => Object.values(eventTypes(noun))),
    ...JOBS.flatMap(({ types }) => [types.requested, types.finished, types.deleted]),
  ],
  apply: (event, rows) => {
    if (event.stream.startsWith(GEOFENCE_PREFIX)) return positions(event, rows)
    return JOBS.some(({ prefix }) => event.stream.startsWith(prefix)) ? filesOfJob(event, rows) : files(event, rows)
  },
}

const positions = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, shape, changes } = dataOf<Data>(event)
  const now = shape ?? changes?.shape
  if (now === undefined && event.type !== GEOFENCE_DELETED) return
  const before = await rows.get<UseOfOne>(USES_OF_ONE.name, organizationId, event.stream)
  await count(
    rows,
    { organizationId, event, sum: 'geofencePositions', before },
    now === undefined ? 0 : positionsOf(now),
  )
}

const files = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, values = {} } = dataOf<Data>(event)
  const noun = categoryOf(event.stream)
  const isDeleted = event.type === eventTypes(noun).deleted
  const named = isDeleted ? [] : storedFiles(values)
  if (named.length === 0) {
    // Most tasks and records never have a file: their own row is only looked up where some record has one.
    const uses = await rows.get<UsesRow>(USES.name, organizationId, organizationId)
    if ((uses?.withFiles ?? 0) === 0) return
  }
  const before = await rows.get<UseOfOne>(USES_OF_ONE.name, organizationId, event.stream)
  const use = { organizationId, event, sum: 'filesBytes', before } as const
  if (noun !== ADDON || isDeleted) return count(rows, use, bytesOf(named))
  // Every version of an add-on stays for as long as the add-on does.
  await count(rows, use, (before?.amount ?? 0) + newBytes(values, before?.named), values)
}

/** The uploaded file, and the one that an attempt stored at its end. */
interface JobData {
  organizationId: string
  size?: number
  result?: Partial<ExportResult & ImportResult>
}

const filesOfJob = async (event: RecordedEvent, rows: Rows): Promise<void> => {
  const { organizationId, size = 0, result } = dataOf<JobData>(event)
  const before = await rows.get<UseOfOne>(USES_OF_ONE.name, organizationId, event.stream)
  const isDeleted = JOBS.some(({ types }) => event.type === types.deleted)
  const more = result === undefined ? size : (result.size ?? result.reportBytes ?? 0)
  const amount = isDeleted ? 0 : (before?.amount ?? 0) + more
  await count(rows, { organizationId, event, sum: 'filesBytes', before, isJob: true }, amount)
}

interface Use {
  organizationId: string
  event: RecordedEvent
  sum: Sum
  before: UseOfOne | undefined
  isJob?: boolean
}

const count = async (
  rows: Rows,
  { organizationId, event, sum, before, isJob }: Use,
  amount: number,
  named?: JsonObject,
): Promise<void> => {
  const { stream, position } = event
  if (before !== undefined && before.position >= position) return
  if (amount > 0) rows.put(USES_OF_ONE.name, organizationId, stream, { amount, position, ...(named && { named }) })
  else if (before !== undefined) rows.delete(USES_OF_ONE.name, organizationId, stream)
  const more = amount - (before?.amount ?? 0)
  if (more === 0 && amount > 0 === (before !== undefined)) return
  const uses = { ...EMPTY, ...(await rows.get<UsesRow>(USES.name, organizationId, organizationId)) }
  uses[sum] += more
  if (sum === 'filesBytes' && isJob !== true) uses.withFiles += Number(amount > 0) - Number(before !== undefined)
  if (Object.values(uses).every((value) => value === 0)) rows.delete(USES.name, organizationId, organizationId)
  else rows.put(USES.name, organizationId, organizationId, uses)
}
