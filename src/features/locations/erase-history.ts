import type { Appended, EventLog } from '../../engines/event-log.ts'
import type { HistoryErasure } from '../../engines/history-store.ts'
import { encodeJson, type EventMetadata } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { AHEAD_MS } from './ingest/pack-points.ts'
import { HISTORY_ERASED, HISTORY_ERASURES } from './events.ts'

/**
 * Has all that the history keeps of an organization or a tracker erased for ever, with what comes late and what a rebuild
 * would bring back: points, transitions, trips, runs of automations. It may be called again, after a crash too. Resolves
 * when that is decided; it is done when the consumers of the history say so (`erasureSteps`, for what a reply settles).
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

/** Until when a tracker is erased that is to be erased now, and may be made anew: clocks of devices may be that far ahead. */
export const erasedThrough = (now: number): number => now + AHEAD_MS
