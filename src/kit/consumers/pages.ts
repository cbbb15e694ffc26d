import { breathe } from '../../kernel/breath.ts'
import type { RecordedEvent } from '../../kernel/event.ts'

/**
 * Maximum of a page in events and, approximately, in bytes. Every consumer of every partition that is behind holds one,
 * decoded, and under load an event has some thousand points.
 */
const EVENTS_MAX = 64
const BYTES_MAX = 524_288

/** How many events to read at a time: one while nothing is known of their size; then the sizes found decide about the next page. */
export class PageSize {
  /** Events of the next page. */
  events = 1

  note(page: readonly RecordedEvent[]): void {
    if (page.length === 0) return
    const bytes = page.reduce((sum, { data }) => sum + data.byteLength, 0)
    this.events = Math.max(1, Math.min(EVENTS_MAX, Math.floor((BYTES_MAX * page.length) / Math.max(1, bytes))))
  }
}

/** Events with their entries. With breaths: decoding a page of large events takes longer than sockets may wait. */
export const decodePage = async <Entry>(
  page: readonly RecordedEvent[],
  decode: (event: RecordedEvent) => Entry,
): Promise<(RecordedEvent & { entry: Entry; weight: number })[]> => {
  const decoded: (RecordedEvent & { entry: Entry; weight: number })[] = []
  for (const event of page) {
    const pause = breathe()
    if (pause !== undefined) await pause
    decoded.push({ ...event, entry: decode(event), weight: 1 })
  }
  return decoded
}
