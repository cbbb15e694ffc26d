import type { EventLog } from '../engines/event-log.ts'
import { decodeJson } from '../kernel/event.ts'

/** Whether the organization has, or had, the tracker: its own stream says so, also when its row is gone. */
export const ownsTracker = async (log: EventLog, organizationId: string, trackerId: string): Promise<boolean> => {
  const [first] = await log.read(`tracker-${trackerId}`, 0, 1)
  return first !== undefined && decodeJson<{ organizationId: string }>(first.data).organizationId === organizationId
}
