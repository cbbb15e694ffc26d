import type { Readable } from 'node:stream'
import type { RecordedEvent } from '../../kernel/event.ts'
import { type ReadAnswer, recordedOf } from './events.ts'
import { Unanswered } from './unanswered.ts'

/** Part of the client's reads that this file uses: the client's own `_transform` would parse the data of events. */
type ClientRead = Readable & {
  cancel(): Promise<void>
  _transform(answer: ReadAnswer, encoding: string, next: (error: null, event?: RecordedEvent) => void): void
}

/**
 * The whole result of a read, empty for a stream that is not found. The client reads without a deadline, so this one
 * ends a read that is silent for that long. It is read to its end: an abandoned answer stays open in the client.
 * @throws the server's error, or Unanswered after the deadline
 */
export const readToEnd = async (read: unknown, deadlineMs: number): Promise<RecordedEvent[]> => {
  const stream = read as ClientRead
  stream._transform = (answer, _encoding, next) => next(null, recordedOf(answer.getEvent()))
  const late = setTimeout(() => {
    void stream.cancel().catch(() => undefined)
    stream.destroy(new Unanswered(`the log brought nothing for ${deadlineMs} ms`))
  }, deadlineMs)
  try {
    const events: RecordedEvent[] = []
    for await (const event of stream) {
      late.refresh()
      events.push(event as RecordedEvent)
    }
    return events
  } finally {
    clearTimeout(late)
  }
}
