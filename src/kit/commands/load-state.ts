import type { EventLog } from '../../engines/event-log.ts'
import type { Decider } from '../../kernel/decider.ts'
import { factOf, type RecordedEvent } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

const PAGE_EVENTS = 500
/** Folds a stream into its state; version 0 for a stream without events. */
export const loadState = async <State, Command>(
  log: EventLog,
  stream: string,
  decider: Decider<State, Command>,
): Promise<{ state: State; version: number }> => {
  const known = knownStates(log, decider)
  const kept = known.get(stream)
  if (kept !== undefined) {
    const from = Math.min(kept.version, kept.revision)
    const events = await log.read(stream, from, PAGE_EVENTS)
    const witness = events[kept.revision - from]
    // That event is present, so nothing before it was erased either, and it came after that state.
    if (witness?.revision === kept.revision && witness.id === kept.eventId)
      return fold(
        log,
        stream,
        decider,
        known,
        kept,
        events.length < PAGE_EVENTS ? events.slice(kept.version - from) : undefined,
      )
  }
  return fold(log, stream, decider, known, { state: decider.initial, version: 0, bytes: 0 })
}

/** Continues from a state; with `rest`, only over those events. */
const fold = async <State, Command>(
  log: EventLog,
  stream: string,
  decider: Decider<State, Command>,
  known: RecentMap<string, KeptState<State>>,
  begin: Pick<KeptState<State>, 'state' | 'version' | 'bytes'>,
  rest?: readonly RecordedEvent[],
): Promise<{ state: State; version: number }> => {
  let { state, version, bytes } = begin
  for (;;) {
    const events = rest ?? (await log.read(stream, version, PAGE_EVENTS))
    for (const event of events) {
      state = decider.evolve(state, factOf(event))
      version = event.revision + 1 // a truncated stream begins late
      bytes = Math.max(bytes, event.data.byteLength)
    }
    if (rest === undefined && events.length === PAGE_EVENTS) continue
    const last = events.at(-1)
    if (last !== undefined && version >= LONG_EVENTS && bytes <= KEPT_BYTES_MAX)
      known.set(stream, { state, version, revision: last.revision, eventId: last.id, bytes })
    return { state, version }
  }
}

/** The state of a stream, so that the next command only reads what follows it. */
interface KeptState<State> {
  state: State
  version: number
  /** Revision of the event that proves the state to be of this stream: the last one folded, or one decided on it. */
  revision: number
  eventId: string
  /** Size of the largest folded event: a small last event may rename a large shape. */
  bytes: number
}

/** Shorter streams are read again in no time. */
const LONG_EVENTS = 3
const KEPT_BYTES_MAX = 16 * 1024
/** Budget of kept states of one kind: the largest event of each, and a state's own size, as some grow by small ones. */
const ALL_KEPT_BYTES = 4 * 1024 * 1024
const STATE_BYTES = 2_000

/**
 * Keeps the state for the next command, which reads the events appended here, at hand in the log. The state after them
 * is folded then, from the stored data: decided data may hold members that JSON leaves out.
 */
export const keepDecided = <State, Command>(
  log: EventLog,
  stream: string,
  decider: Decider<State, Command>,
  decided: Omit<KeptState<State>, 'bytes'>,
): void => {
  const known = knownStates(log, decider)
  const kept = known.get(stream)
  // No state is kept of a short stream, nor after a large event.
  if (kept?.version === decided.version) known.set(stream, { ...decided, bytes: kept.bytes })
}

const states = new WeakMap<EventLog, WeakMap<object, RecentMap<string, KeptState<unknown>>>>()

const knownStates = <State, Command>(
  log: EventLog,
  decider: Decider<State, Command>,
): RecentMap<string, KeptState<State>> => {
  const ofLog = states.get(log) ?? new WeakMap<object, RecentMap<string, KeptState<unknown>>>()
  states.set(log, ofLog)
  const known =
    ofLog.get(decider) ?? new RecentMap<string, KeptState<unknown>>(ALL_KEPT_BYTES, ({ bytes }) => STATE_BYTES + bytes)
  ofLog.set(decider, known)
  return known as RecentMap<string, KeptState<State>>
}
