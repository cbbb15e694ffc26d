import type { EventLog } from '../../engines/event-log.ts'
import { factOf, type Fact } from '../../kernel/event.ts'

const PAGE_EVENTS = 100

/** What a stream says up to and with a revision, or what is left of it does where its beginning was truncated. */
export const foldStream = async <State>(
  log: Pick<EventLog, 'read'>,
  stream: string,
  through: number,
  initial: State,
  evolve: (state: State, fact: Fact) => State,
): Promise<State> => {
  let state = initial
  for (let next = 0; next <= through; ) {
    const events = await log.read(stream, next, Math.min(PAGE_EVENTS, through + 1 - next))
    if (events.length === 0) break
    for (const event of events) if (event.revision <= through) state = evolve(state, factOf(event))
    next = events[events.length - 1].revision + 1
  }
  return state
}
