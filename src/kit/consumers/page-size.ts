import type { RecordedEvent } from '../../kernel/event.ts'

/**
 * Maximum of a page in events and, approximately, in bytes. Every consumer of every partition that is behind holds one,
 * decoded, and under load an event has some thousand points.
 */
const EVENTS_MAX = 64
const BYTES_MAX = 262_144

/** How many events to read at a time: the first page is one event, the next follow the sizes found. */
export class PageSize {
  /** Events of the next page. */
  events = 1

  note(page: readonly RecordedEvent[]): void {
    const bytes = page.reduce((sum, { data }) => sum + data.byteLength, 0)
    this.events = Math.max(1, Math.min(EVENTS_MAX, Math.floor((BYTES_MAX * page.length) / Math.max(1, bytes))))
  }
}
