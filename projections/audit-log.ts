import { auditBlock, type AuditEntry } from '../src/engines/clickhouse-sql/audit.ts'
import { AUDIT as AUDIT_TABLE } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import { AUDIT, auditedPrefixes, auditEntry } from '../src/features/audit/views.ts'
import type { RecordedEvent } from '../src/kernel/event.ts'
import { Follower, type FollowerServices } from '../src/kit/consumers/follower.ts'
import { pause } from '../src/kit/consumers/retry.ts'
import type { Erased, HistoryErasures } from './erasures.ts'
import { EntryBuffer } from './history-consumer.ts'

export interface AuditServices extends FollowerServices {
  history: Pick<HistoryStore, 'insert'>
  /** Epoch of the log, from 0. */
  epoch: number
  /** As of `HistoryServices`. */
  life?: string
  erasures: HistoryErasures
  /** The nouns whose events are audited. */
  nouns: ReadonlySet<string>
}

const BATCH_EVENTS_MAX = 512
/** Pause between inserts, while events gather for the next, so that many commands make few parts. */
const GATHER_MS = 250

export interface AuditedEvent {
  revision: number
  event: RecordedEvent
  /** Its row, once made. */
  row?: AuditEntry
}

/** The rows of the audit log, without those of erased organizations. */
export const auditBuffer = (nouns: ReadonlySet<string>, erased: Erased): EntryBuffer<AuditedEvent> => {
  const rowOf = (entry: AuditedEvent) => {
    entry.row ??= auditEntry(entry.event, nouns)
    return entry.row === undefined || erased.hasAllOf(entry.row.organizationId) ? undefined : entry.row
  }
  return new EntryBuffer(
    (entry) => (rowOf(entry) === undefined ? 0 : 1),
    (entries) => {
      const rows = entries.map(({ entry }) => rowOf(entry)).filter((row) => row !== undefined)
      return rows.length === 0 ? [] : [{ table: AUDIT_TABLE, block: auditBlock(rows) }]
    },
  )
}

/** Puts the acts of people and the service into the history, from which, with the log, the audit log is answered. */
export const auditFollower = (services: AuditServices): Follower => {
  const { history, clock, epoch, life = epoch, nouns, erasures } = services
  const buffer = auditBuffer(nouns, erasures.known)
  let insertedAtMs = Number.NEGATIVE_INFINITY
  return new Follower(services, {
    name: AUDIT,
    source: { prefixes: auditedPrefixes(nouns) },
    batchEventsMax: BATCH_EVENTS_MAX,
    handle: async ({ events, caughtUp }, signal) => {
      buffer.clear()
      for (const event of events) buffer.add({ revision: event.revision, event }, 0)
      // Readers of the audit log wait for the checkpoint, also where an event makes no row.
      if (buffer.rows === 0) return caughtUp && events.length > 0 ? [] : undefined
      const leftMs = insertedAtMs + GATHER_MS - clock.monotonic()
      if (caughtUp && leftMs > 0) await pause(clock, leftMs, signal)
      if (signal.aborted) return undefined
      const token = `audit:${life}:${events[0].position}-${events.at(-1)?.position}`
      // Made and inserted in one turn of the erasures: no row that they remove is on its way here.
      await erasures.beside(async () => {
        for (const { table, block } of await buffer.blocks()) await history.insert(table, block, token)
      })
      insertedAtMs = clock.monotonic()
      return []
    },
  })
}
