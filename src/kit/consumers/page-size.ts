import type { RecordedEvent } from '../../kernel/event.ts'

/**
 * Maximum of a page in events and, approximately, in bytes. Every consumer of every partition that is behind holds one,
 * decoded, and under load an event has some thousand points.
 */
const EVENTS_MAX = 64
const BYTES_MAX = 524_288
/** Events of a first page, before their size is known: few large ones, and enough small ones that a takeover needs no second read. */
const EVENTS_FIRST = 16

/** How many events to read at a time: the sizes found decide about the next page. */
export class PageSize {
  /** Events of the next page. */
  events = EVENTS_FIRST

  note(page: readonly RecordedEvent[]): void {
    const bytes = page.reduce((sum, { data }) => sum + data.byteLength, 0)
    this.events = Math.max(1, Math.min(EVENTS_MAX, Math.floor((BYTES_MAX * page.length) / Math.max(1, bytes))))
  }
}
