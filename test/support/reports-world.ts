import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { PointBlock } from '../../projections/location-history-block.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { POINTS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { type ReportServices, reportRoutes } from '../../src/features/reports/api.ts'
import type { Transition, TripChange } from '../../src/features/transitions/events.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { routeCaller } from './call-route.ts'
import { FakeClock } from './fake-clock.ts'
import { folderOf } from './folder-of.ts'
import { ownerOf } from './geofence-world.ts'
import { insertDecided } from './history-writers.ts'
import { entriesOf, type PlainPoint, uuidOf } from './trace-batches.ts'

export const GAP_MS = 30 * 60_000

/** The routes of reports over an embedded history, whose answers are read whole. */
export const openReports = async (t: Test, given: Partial<ReportServices> = {}, opened?: HistoryStore) => {
  const history = opened ?? (await openHistory(t))
  const organizationId = randomUUID()
  let revision = 0
  const routes = reportRoutes({
    history,
    tables: { find: async () => ({ rows: [], next: null }), getMany: async () => [], async *scan() {} },
    visibleTrackers: async () => 'all',
    trackerNames: async (_organizationId, ids) => ids.map(() => undefined),
    timeZoneOf: async () => 'UTC',
    gapMs: GAP_MS,
    seesGeofences: () => true,
    placesOf: () => async () => [],
    limitsOf: async () => () => undefined,
    ...given,
  })
  const call = routeCaller({ routes, clock: new FakeClock(Date.parse('2026-07-01T00:00:00Z')) })
  const open = (path: string, signal?: AbortSignal, caller: UserCaller = ownerOf(organizationId)) =>
    call('GET', `/reports/${path}`, { caller, ...(signal && { signal }) })
  const ask = async (path: string, caller?: UserCaller) => {
    const answer = await open(path, undefined, caller)
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.stream ?? []) chunks.push(Buffer.from(chunk))
    const text = Buffer.concat(chunks).toString()
    return { ...answer, text, json: text.startsWith('{"status"') ? JSON.parse(text) : undefined }
  }
  return {
    history,
    organizationId,
    ask,
    /** The answer as it comes, until the signal is aborted. */
    open,
    /** Every row of a report, in the format that has no page. */
    rows: async (path: string) => {
      const { text, status, body } = await ask(`${path}&format=ndjson`)
      if (status !== 200) throw new Error(JSON.stringify(body))
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    },
    insert: async (points: readonly PlainPoint[]) => {
      const block = new PointBlock(points.length)
      const own = points.map((point) => ({ ...point, organizationId }))
      for (const entry of entriesOf(own, 1, 10_000, Number.POSITIVE_INFINITY))
        if (entry.kind === 'points') block.add(entry.batch, 0, revision++)
      await history.insert(POINTS, block.encode(), randomUUID())
    },
    decide: async (decisions: (Transition | TripChange)[]) => {
      const decided = { sourceRevision: revision, ordinal: 0, sourceLoggedAt: 0, decisions }
      await insertDecided(history, { revision: revision++, decided }, randomUUID())
    },
  }
}

export const openHistory = async (t: Test): Promise<HistoryStore> => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  return history
}

/** The buses of the demo. */
export const demoTrace = (): PlainPoint[] =>
  gunzipSync(readFileSync('demo/fleet-warsaw.csv.gz'))
    .toString()
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [tracker, at, lat, lng] = line.split(',')
      return {
        organizationId: '',
        trackerId: uuidOf(tracker),
        recordedAt: Date.parse(at),
        latE7: Math.round(Number(lat) * 1e7),
        lngE7: Math.round(Number(lng) * 1e7),
        flags: 0,
      }
    })
