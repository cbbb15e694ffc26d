import { Failure } from '../../kernel/errors.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { readFrame } from './frame.ts'
import type { LogStore, StreamInfo } from './store.ts'

/** Approximate bytes of event data after which a follower's batch ends. */
export const BATCH_BYTES_MAX = 4 * 1024 * 1024

/** Events of a stream from a revision on, at most `limit` and not much over four MiB. */
export const readForwards = (store: LogStore, info: StreamInfo, from: number, limit: number): RecordedEvent[] => {
  const events: RecordedEvent[] = []
  let bytes = 0
  for (
    let revision = Math.max(from, info.first);
    revision <= info.head && events.length < limit && bytes < BATCH_BYTES_MAX;
    revision += 1
  ) {
    const event = readEvent(store, info.name, info.no, revision)
    if (event === undefined) continue
    events.push(event)
    bytes += event.data.byteLength
  }
  return events
}

/** Undefined when it was truncated meanwhile. */
export const readEvent = (store: LogStore, name: string, no: number, revision: number): RecordedEvent | undefined => {
  const recent = store.recentEvent(no, revision)
  if (recent !== undefined) return recent
  const frame = store.frame(no, revision)
  if (frame !== undefined) return readFrame(frame, name, revision)
  const first = store.stream(name)?.first ?? 0
  if (revision >= first)
    throw new Failure('internal', { message: `Event ${revision} of stream ${name} is missing in the log.` })
  return undefined
}
