import { auditBlock } from '../src/engines/clickhouse-sql/audit.ts'
import { AUDIT as AUDIT_TABLE } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import { AUDIT, auditedPrefixes, auditEntry } from '../src/features/audit/views.ts'
import type { RecordedEvent } from '../src/kernel/event.ts'
import { Follower, type FollowerServices } from '../src/kit/consumers/follower.ts'
import { pause } from '../src/kit/consumers/retry.ts'
import type { EntryRows } from './history-consumer.ts'

export interface AuditServices extends FollowerServices {
  history: Pick<HistoryStore, 'insert'>
  /** Epoch of the log, from 0. */
  epoch: number
  /** The kinds of things whose events are audited. */
  nouns: ReadonlySet<string>
}

const BATCH_EVENTS_MAX = 512
/** An insert follows the one before after so long: meanwhile events gather for the next, so that many commands make few parts. */
const GATHER_MS = 250

/** One event of the streams that are audited. */
export interface AuditedEvent {
  revision: number
  event: RecordedEvent
}

/** The rows of the audit log. */
export const auditRows = (nouns: ReadonlySet<string>): EntryRows<AuditedEvent> => ({
  rowsOf: ({ event }) => (auditEntry(event, nouns) === undefined ? 0 : 1),
  blocks: (entries) => {
    const rows = entries.map(({ entry }) => auditEntry(entry.event, nouns)).filter((row) => row !== undefined)
    return rows.length === 0 ? [] : [{ table: AUDIT_TABLE, block: auditBlock(rows) }]
  },
})

/** Puts what people and the service did into the history: from which, with the log, the audit log is answered. */
export const auditFollower = (services: AuditServices): Follower => {
  const { history, clock, epoch, nouns } = services
  const { blocks } = auditRows(nouns)
  let insertedAtMs = Number.NEGATIVE_INFINITY
  return new Follower(services, {
    name: AUDIT,
    source: { prefixes: auditedPrefixes(nouns) },
    batchEventsMax: BATCH_EVENTS_MAX,
    handle: async ({ events, caughtUp }, signal) => {
      const entries = events.map((event) => ({ partition: 0, entry: { revision: event.revision, event } }))
      const [made] = await blocks(entries)
      if (made === undefined) return undefined
      const leftMs = insertedAtMs + GATHER_MS - clock.monotonic()
      if (caughtUp && leftMs > 0) await pause(clock, leftMs, signal)
      if (signal.aborted) return undefined
      const token = `audit:${epoch}:${events[0].position}-${events.at(-1)?.position}`
      await history.insert(made.table, made.block, token)
      insertedAtMs = clock.monotonic()
      return []
    },
  })
}
