import type { EventLog } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'

/** First revision from `low` on whose event is kept, or `high`; by bisection, as all after a kept one are kept. */
export const firstKept = async (
  log: Pick<EventLog, 'read'>,
  stream: string,
  low: number,
  high: number,
  isKept: (event: RecordedEvent) => boolean,
): Promise<number> => {
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [event] = await log.read(stream, middle, 1)
    if (event === undefined || isKept(event)) high = middle
    else low = middle + 1
  }
  return low
}
