import { type EventLog, eventsBackwards } from '../../engines/event-log.ts'

const IDS_MAX = 10_000
const PAGE_EVENTS = 64

/** Where the events of one type stand in a stream, after a position of the log: asked again, only newer ones are read. */
export class IdsSince {
  private readonly log: Pick<EventLog, 'read'>
  private readonly stream: string
  private readonly type: string
  private readonly revisions = new Map<string, number>()
  private since = Number.POSITIVE_INFINITY
  private lookedThrough = -1

  constructor(log: Pick<EventLog, 'read'>, stream: string, type: string) {
    this.log = log
    this.stream = stream
    this.type = type
  }

  /** Revision of the event with that id between the position and the revision `head`; undefined for none. */
  async find(id: string, after: number, head: number): Promise<number | undefined> {
    if (after < this.since || this.revisions.size > IDS_MAX) this.forget(after)
    if (head > this.lookedThrough) {
      await this.look(head)
      this.lookedThrough = head
    }
    return this.revisions.get(id)
  }

  private async look(head: number): Promise<void> {
    const unseen = Math.min(PAGE_EVENTS, head - this.lookedThrough)
    for await (const event of eventsBackwards(this.log, this.stream, head, unseen)) {
      if (event.position <= this.since) return
      if (event.type === this.type) this.revisions.set(event.id, event.revision)
      if (event.revision === this.lookedThrough + 1) return
    }
  }

  private forget(since: number): void {
    this.revisions.clear()
    this.since = since
    this.lookedThrough = -1
  }
}
