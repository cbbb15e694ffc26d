import { type EventLog, eventsOf, WrongRevision } from '../../engines/event-log.ts'
import { nextSlice } from '../../kernel/breath.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import { encodeJson, factOf, type EventMetadata, type Fact, type RecordedEvent } from '../../kernel/event.ts'
import type { IdSource, Wrote } from '../http/route.ts'
import { keepDecided, loadState } from './load-state.ts'

/** Metadata that a command carries. Event ids come from `ids`, so a repeated request appends the same events. */
export interface CommandContext {
  ids: IdSource
  metadata: EventMetadata
  /** The version that the client saw; another one is refused with `stale_version`. */
  expectedVersion?: number
  /** Nobody has written to the stream: its id was just drawn at random. If somebody has, the append finds out. */
  isNew?: boolean
  /** One of many that run at once: appends answered together are worked on in slices of the event loop. */
  isOneOfMany?: boolean
}

export interface Handled<State> {
  state: State
  /** Number of events of the stream: the resource's `version`. */
  version: number
  /** Absent when nothing changed. */
  wrote?: Wrote
}

/** Each lost race is another writer's success, so that many concurrent writers all come through. */
const TRIES = 50

/** Makes the command from the state that it is decided on, where other records must be read first. */
export type Prepare<State, Command> = (state: State, version: number) => Promise<Command>

/** Takes the unique values that the state gains, for the append at that version; throws to refuse it. */
export type TakeValues<State> = (after: State, before: State, version: number) => Promise<void>

/**
 * Loads, decides, appends at the revision that was read, and decides again when another writer was faster. A command
 * that is a function is made again from the state of each try. The result of an earlier run of a repeated request is
 * answered as it was, whatever others have changed since: nothing is decided again.
 * @throws Failure of the decider, `key_in_use`, `stale_version`, `conflict` after 50 lost races, `engine_down`.
 */
export const handleCommand = async <State, Command extends object>(
  log: EventLog,
  stream: string,
  decider: Decider<State, Command>,
  command: Command | Prepare<State, Command>,
  { ids, metadata, expectedVersion, isNew, isOneOfMany }: CommandContext,
  take?: TakeValues<State>,
): Promise<Handled<State>> => {
  const eventIds = [ids.next()]
  const doneBefore = () => stateBy(log, stream, decider, ({ id }) => id === eventIds[0])
  const decide = async (state: State, version: number): Promise<readonly Fact[]> => {
    if (expectedVersion !== undefined && expectedVersion !== version)
      throw new Failure('stale_version', { extra: { version } })
    return decider.decide(typeof command === 'function' ? await command(state, version) : command, state)
  }
  for (let tries = 0; tries < TRIES; tries++) {
    const isUnwritten = isNew === true && tries === 0
    const { state, version } = isUnwritten
      ? { state: decider.initial, version: 0 }
      : await loadState(log, stream, decider)
    // After the state was read: it may have what the same request wrote meanwhile, asked again of another process.
    const done = ids.isRepeat === true ? await doneBefore() : undefined
    if (done !== undefined) return done
    let facts: readonly Fact[]
    try {
      facts = await decide(state, version)
    } catch (error) {
      const own = ids.isRepeat === undefined ? await doneBefore() : undefined
      if (own === undefined) throw error
      return own
    }
    if (facts.length === 0) return { state, version }
    while (eventIds.length < facts.length) eventIds.push(ids.next())
    const after = facts.reduce(decider.evolve, state)
    await take?.(after, state, version)
    // No break before the append: until then, another command may take the values away.
    const wrote = await appendFacts(log, stream, facts, eventIds, version, metadata)
    if (isOneOfMany === true) await nextSlice()
    if (wrote === undefined) continue
    keepDecided(log, stream, decider, {
      state,
      version,
      revision: version + facts.length - 1,
      eventId: eventIds[facts.length - 1],
    })
    return { state: after, version: version + facts.length, wrote }
  }
  throw new Failure('conflict', {
    message: 'Others are changing this at the same time; try again.',
    retryAfterSeconds: 1,
  })
}

/** The state after the first matching event: it tells a repeated request its own result, and its time. */
export const stateBy = async <State, Command>(
  log: EventLog,
  stream: string,
  decider: Decider<State, Command>,
  isOwn: (event: RecordedEvent) => boolean,
): Promise<Handled<State> | undefined> => {
  let state = decider.initial
  for await (const event of eventsOf(log, stream)) {
    state = decider.evolve(state, factOf(event))
    const wrote = { position: event.position, types: [event.type] }
    if (isOwn(event)) return { state, version: event.revision + 1, wrote }
  }
  return undefined
}

/** Appends the facts to a stream that has `version` events; undefined when the stream has changed. */
export const appendFacts = async (
  log: EventLog,
  stream: string,
  facts: readonly Fact[],
  eventIds: readonly string[],
  version: number,
  metadata: EventMetadata,
): Promise<Wrote | undefined> => {
  const events = facts.map((fact, i) => ({
    id: eventIds[i],
    type: fact.type,
    data: encodeJson(fact.data),
    isJson: true,
    metadata,
  }))
  try {
    const { position } = await log.append(stream, events, version === 0 ? 'none' : version - 1)
    return { position, types: facts.map((fact) => fact.type) }
  } catch (error) {
    if (error instanceof WrongRevision) return undefined
    throw error
  }
}
