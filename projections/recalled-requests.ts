import type { Clock } from '../src/kernel/clock.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'
import { KEPT_MS, readMark, RECALLED } from '../src/kit/http/request-mark.ts'

/**
 * Writes of requests under an Idempotency-Key in the last day, from the log. The keys themselves are kept in tables
 * only; where those were lost, a repeat is recognized by this, and makes the existing records.
 * @param prefixes of all streams that requests write
 */
export const recalledRequests = (clock: Pick<Clock, 'now'>, prefixes: readonly string[]): Projection => ({
  name: 'recalled-requests',
  version: 1,
  tables: [RECALLED],
  prefixes,
  inputs: [],
  isBuiltOnce: true,
  apply: ({ metadata }, rows) => {
    if (metadata.request === undefined) return
    const { scope, id, row } = readMark(metadata.request)
    const expiresAt = row.startedAt + KEPT_MS
    if (expiresAt > clock.now()) rows.put(RECALLED.name, scope, id, row, expiresAt)
  },
})
