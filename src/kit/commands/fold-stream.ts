import { type EventLog, eventsOf } from '../../engines/event-log.ts'
import { factOf, type Fact } from '../../kernel/event.ts'

/** State of a stream up to and including a revision, or of the rest of it where its beginning was truncated. */
export const foldStream = async <State>(
  log: Pick<EventLog, 'read'>,
  stream: string,
  through: number,
  initial: State,
  evolve: (state: State, fact: Fact) => State,
): Promise<State> => {
  let state = initial
  for await (const event of eventsOf(log, stream, 0, through)) state = evolve(state, factOf(event))
  return state
}
