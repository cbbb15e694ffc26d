import { DECIDED, type Decided } from '../../features/transitions/events.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'

/** One event of a transition stream, decoded once per process. */
export interface TransitionEntry {
  revision: number
  /** In the whole log. */
  position: number
  /** Absent for what decides nothing. */
  decided?: Decided
}

export const decodeTransition = (event: RecordedEvent): TransitionEntry => ({
  revision: event.revision,
  position: event.position,
  ...(event.type === DECIDED && { decided: decodeJson<Decided>(event.data) }),
})
