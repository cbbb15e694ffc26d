import type { Readable } from 'node:stream'
import type { ResolvedEvent } from '@eventstore/db-client'
import { Unanswered } from './unanswered.ts'

/** What this file uses of the client's reads. */
type ClientRead = Readable & { cancel(): Promise<void> }

/**
 * All that a read brings. The client reads without a deadline, so this one ends a read that brings nothing for so long.
 * It is read to its end: an answer that is left early stays open in the client.
 * @throws what the server answers, or Unanswered after the deadline
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
