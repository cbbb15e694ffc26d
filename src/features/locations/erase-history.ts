import type { Appended, EventLog } from '../../engines/event-log.ts'
import type { HistoryErasure } from '../../engines/history-store.ts'
import { encodeJson, type EventMetadata } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { AHEAD_MS } from './ingest/pack-points.ts'
import { HISTORY_ERASED, HISTORY_ERASURES } from './events.ts'

/**
 * Decides to erase all history of an organization or a tracker for ever, including late arrivals and rows that a
 * rebuild would restore: points, transitions, trips, automation runs. May be repeated, also after a crash. Resolves
 * once logged; the checkpoints of the history's consumers report completion.
 */
export const eraseHistory = (
  log: Pick<EventLog, 'append'>,
  erasure: HistoryErasure,
  metadata: EventMetadata,
): Promise<Appended> => {
  const { organizationId, trackerId = '', through = '' } = erasure
  const id = idFrom(HISTORY_ERASED, organizationId, trackerId, through)
  const event = { id, type: HISTORY_ERASED, data: encodeJson(erasure), isJson: true, metadata }
  return log.append(HISTORY_ERASURES, [event], 'any')
}

/** Time through which a tracker is erased now, though it may be recreated: device clocks may be that far ahead. */
export const erasedThrough = (now: number): number => now + AHEAD_MS
