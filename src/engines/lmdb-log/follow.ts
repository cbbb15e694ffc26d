import { breathe } from '../../kernel/breath.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { FollowBatch } from '../event-log.ts'
import { IndexMerge } from './merge.ts'
import { BATCH_BYTES_MAX, readForwards } from './read.ts'
import type { LogStore, StreamInfo } from './store.ts'

// A sleeping follower reports foreign events now and then, so that its checkpoint does not look old.
const FOREIGN_UNHEARD_MAX = 10_000
// Events read before others may get their turn: about a millisecond.
const EVENTS_PER_SLICE = 128

/** A sleeping follower: it is woken by a commit that concerns it, by its signal, or at the end of the log. */
interface Sleeper {
  concerns(info: StreamInfo): boolean
  wakeAtPosition: number
  wake(): void
}

/** Followers waiting for the next commit. There is no polling. */
export class Followers {
  private readonly sleepers = new Set<Sleeper>()
  closed = false

  committed(streams: Iterable<StreamInfo>, headPosition: number): void {
    if (this.sleepers.size === 0) return
    const infos = [...streams]
    for (const sleeper of this.sleepers) {
      if (headPosition >= sleeper.wakeAtPosition || infos.some((info) => sleeper.concerns(info))) sleeper.wake()
    }
  }

  close(): void {
    this.closed = true
    for (const sleeper of this.sleepers) sleeper.wake()
  }

  sleep(signal: AbortSignal, wakeAtPosition: number, concerns: (info: StreamInfo) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.sleepers.delete(sleeper)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { concerns, wakeAtPosition, wake }
      this.sleepers.add(sleeper)
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted || this.closed) wake()
    })
  }
}

export async function* followStream(
  store: LogStore,
  followers: Followers,
  stream: string,
  after: number,
  signal: AbortSignal,
  batchEventsMax: number,
): AsyncGenerator<FollowBatch> {
  let checkpoint = after
  let told = false
  for (;;) {
    await breathe()
    if (signal.aborted || followers.closed) return
    const info = store.stream(stream)
    const head = info?.head ?? -1
    if (info === undefined || checkpoint >= head) {
      if (!told) yield { events: [], checkpoint, caughtUp: true }
      told = true
      if (store.stream(stream)?.head !== info?.head) continue
      await followers.sleep(signal, Number.POSITIVE_INFINITY, ({ name, head: now }) => name === stream && now > head)
      continue
    }
    const events = readForwards(store, info, checkpoint + 1, batchEventsMax)
    const last = events.at(-1)
    checkpoint = last === undefined ? head : last.revision
    told = checkpoint >= (store.stream(stream)?.head ?? -1)
    yield { events, checkpoint, caughtUp: told }
  }
}

/** Follows all streams with one of the prefixes by their positions: merges the indexes of the categories that can hold them. */
export async function* followPrefixes(
  store: LogStore,
  followers: Followers,
  prefixes: readonly string[],
  after: number,
  signal: AbortSignal,
  batchEventsMax: number,
): AsyncGenerator<FollowBatch> {
  const matches = (name: string): boolean => !name.startsWith('$') && prefixes.some((prefix) => name.startsWith(prefix))
  const merge = new IndexMerge(store, prefixes, after)
  let told = false
  for (;;) {
    await breathe()
    if (signal.aborted || followers.closed) return
    const headPosition = store.current.nextPosition - 1
    if (merge.checkpoint >= headPosition) {
      if (!told) yield { events: [], checkpoint: merge.checkpoint, caughtUp: true }
      told = true
      if (store.current.nextPosition - 1 > headPosition) continue
      await followers.sleep(
        signal,
        merge.checkpoint + FOREIGN_UNHEARD_MAX,
        ({ name, head, first }) => head >= first && matches(name),
      )
      continue
    }
    const events: RecordedEvent[] = []
    for (let isMore = true; isMore; ) {
      if (events.length > 0) await breathe()
      if (signal.aborted || followers.closed) return
      const wanted = Math.min(EVENTS_PER_SLICE, batchEventsMax - events.length)
      const slice = merge.take(headPosition, wanted, matches)
      events.push(...slice)
      isMore = slice.length === EVENTS_PER_SLICE && events.length < batchEventsMax && bytesOf(events) < BATCH_BYTES_MAX
    }
    told = merge.checkpoint >= store.current.nextPosition - 1
    yield { events, checkpoint: merge.checkpoint, caughtUp: told }
  }
}

const bytesOf = (events: readonly RecordedEvent[]): number => events.reduce((sum, { data }) => sum + data.byteLength, 0)
