import type { Readable } from 'node:stream'
import type { ResolvedEvent } from '@eventstore/db-client'
import { Unanswered } from './unanswered.ts'

/** Part of the client's reads that this file uses. */
type ClientRead = Readable & { cancel(): Promise<void> }

/**
 * The whole result of a read. The client reads without a deadline, so this one ends a read that is silent for that
 * long. It is read to its end: an abandoned answer stays open in the client.
 * @throws the server's error, or Unanswered after the deadline
 */
export const readToEnd = async (read: unknown, deadlineMs: number): Promise<ResolvedEvent[]> => {
  const stream = read as ClientRead
  const late = setTimeout(() => {
    void stream.cancel().catch(() => undefined)
    stream.destroy(new Unanswered(`the log brought nothing for ${deadlineMs} ms`))
  }, deadlineMs)
  try {
    const events: ResolvedEvent[] = []
    for await (const resolved of stream) {
      late.refresh()
      events.push(resolved as ResolvedEvent)
    }
    return events
  } finally {
    clearTimeout(late)
  }
}
