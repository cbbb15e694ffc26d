import type { TableStore } from '../../engines/table-store.ts'
import { runIdOf, type RunsOwed, type RunTrigger, type SkipReason } from '../../features/automations/events.ts'
import { shareOf } from '../../features/automations/chain.ts'
import { matcherOf } from '../../features/automations/rules.ts'
import { triggerKey, type AutomationRow } from '../../features/automations/views.ts'
import { DECIDED, type Decided, type Decision } from '../../features/transitions/events.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { ActiveAutomations } from './active-automations.ts'
import type { Directory, TrackerShown } from './directory.ts'
import { rulesData, seeEvent } from './event-data.ts'
import type { EventSeen } from './event-seen.ts'
import { type OwedFact, OwedFacts, RUNS_PER_EVENT_MAX } from './owed-facts.ts'
import type { PendingRuns } from './pending-runs.ts'
import { type HeardEvent, heardEvent, isAnyActive, subjectSeen } from './subject-event.ts'
import type { SubjectRates } from './subject-rates.ts'

/** One event of a transition stream, decoded once per process. */
export interface TransitionEntry {
  revision: number
  position: number
  /** Absent for an event that decides nothing. */
  decided?: Decided
}

export const decodeTransition = (event: RecordedEvent): TransitionEntry => ({
  revision: event.revision,
  position: event.position,
  ...(event.type === DECIDED && { decided: decodeJson<Decided>(event.data) }),
})

export interface OweOptions {
  tables: TableStore
  directory: Directory
  now: () => number
  /** Events older than this when logged are skipped, ms. */
  maxAgeMs: number
  /** Runs of one automation that may wait. */
  waitingMax: number
  /** Number of owed and unpaid runs of an automation, over all partitions of this process. */
  waiting: (automationId: string) => number
}

type Owed = RunsOwed['owed'][number]

/**
 * Runs that one event of a transition stream owes: one for each decision and each active automation that it concerns,
 * as facts to append. Runs that were owed before the entry was cut short (`pending.partial`) are left out, so each is
 * owed once, whatever has changed since.
 */
export const oweRuns = async (
  options: OweOptions,
  pending: PendingRuns,
  { revision, position, decided }: TransitionEntry,
): Promise<OwedFact[]> => {
  if (decided === undefined) return []
  // Later ones are owed the earlier events once they are known, in their order (`owe-past.ts`).
  const isHeard = (row: AutomationRow): boolean => row.activatedPosition <= pending.progress.automations
  const look = new EntryLook(new ActiveAutomations(options.tables), options, isHeard)
  const isOwed = (runId: string): boolean => pending.partial.has(runId)
  const owed = await owedForEntry(options, look, { revision, position, decided }, isOwed, new Map())
  if (owed.length === 0 && pending.cutAt !== revision) return []
  const facts = new OwedFacts('transitions', options.now(), pending.progress.sequence)
  facts.add(revision, owed)
  return facts.done()
}

/**
 * Runs of one event of a transition stream, for the automations that `look` knows, without owed ones.
 * @param added runs by automation that are to be owed together, counted on
 */
export const owedForEntry = async (
  options: OweOptions,
  look: EntryLook,
  { position, decided }: TransitionEntry,
  isOwed: (runId: string) => boolean,
  added: Map<string, number>,
): Promise<Owed[]> => {
  const owed: Owed[] = []
  if (decided === undefined) return owed
  for (const decision of decided.decisions) {
    const trigger = triggerOf(decision)
    const see = (): Promise<EventSeen> => look.see(trigger, decided.sourceLoggedAt)
    const concerned = await look.concerned(trigger, position, see)
    const automations = concerned.filter(({ _id }) => !isOwed(runIdOf(trigger, _id)))
    if (automations.length === 0) continue
    const runs = automations.map(({ _id: automationId }) => {
      const reason = skipReason(options, ageMs(decision, decided.sourceLoggedAt), automationId, added)
      return { automationId, ...(reason !== undefined && { reason }) }
    })
    for (let from = 0; from < runs.length; from += RUNS_PER_EVENT_MAX)
      owed.push({ trigger, runs: runs.slice(from, from + RUNS_PER_EVENT_MAX) })
  }
  return owed
}

/** Runs of events of tasks and records; most concern no automation, and are not decoded. */
export const oweHeard = async (
  options: OweOptions,
  pending: PendingRuns,
  rates: SubjectRates,
  events: readonly RecordedEvent[],
  active: ActiveAutomations,
): Promise<OwedFact[]> => {
  const heard: HeardEvent[] = []
  for (const event of events) {
    const isAny = pending.cutLogAt === event.position || isAnyActive(active, event)
    if (isAny && (await isAny)) heard.push(await heardEvent(options.directory.subjects.rows, event))
  }
  const some = heard.filter(({ triggers }) => triggers.length > 0)
  return some.length === 0 ? [] : oweLogRuns(options, pending, rates, some, active)
}

/**
 * The same for events of tasks and records, in the order of the log; automations may have caused them themselves. They
 * are judged on the state that they left, whatever became of it since.
 */
export const oweLogRuns = async (
  options: OweOptions,
  pending: PendingRuns,
  rates: SubjectRates,
  heard: readonly HeardEvent[],
  active: ActiveAutomations,
): Promise<OwedFact[]> => {
  const look = new EntryLook(active, options)
  const added = new Map<string, number>()
  const facts = new OwedFacts('log', options.now(), pending.progress.sequence)
  for (const one of heard) {
    const owed = await owedFor(options, pending, rates, look, added, one)
    const { position } = one.event
    if (owed.length > 0 || pending.cutLogAt === position) facts.add(position, owed)
  }
  return facts.done()
}

const owedFor = async (
  options: OweOptions,
  pending: PendingRuns,
  rates: SubjectRates,
  look: EntryLook,
  added: Map<string, number>,
  { event: { position, loggedAt, metadata }, triggers, after, before }: HeardEvent,
): Promise<Owed[]> => {
  const concerned: { trigger: RunTrigger; rows: AutomationRow[] }[] = []
  for (const trigger of triggers) {
    const see = (): EventSeen => subjectSeen(options.directory.subjects, trigger, after, before)
    concerned.push({ trigger, rows: await look.concerned(trigger, position, see) })
  }
  const wanted = concerned.reduce((sum, { rows }) => sum + rows.length, 0)
  const share = shareOf(metadata.chain, wanted)
  const chain = { depth: metadata.chain?.depth ?? 0, runs: share.runs }
  const owed: Owed[] = []
  let begun = 0
  for (const { trigger, rows } of concerned) {
    const runs = rows.flatMap(({ _id: automationId }) => {
      const isLoop = begun++ >= share.admitted || !rates.admits(automationId, trigger.subject.id, position, loggedAt)
      if (pending.partialLog.size > 0 && pending.partialLog.has(runIdOf(trigger, automationId))) return []
      const reason = isLoop ? 'loop' : skipReason(options, loggedAt - trigger.at, automationId, added)
      return [{ automationId, ...(reason !== undefined && { reason }) }]
    })
    for (let from = 0; from < runs.length; from += RUNS_PER_EVENT_MAX)
      owed.push({ trigger: { chain, ...trigger }, runs: runs.slice(from, from + RUNS_PER_EVENT_MAX) })
  }
  return owed
}

/** The event of an automation for a decision. */
export const triggerOf = (decision: Decision): RunTrigger => {
  const { _id: sourceId, organizationId, trackerId, point } = decision
  const subject = { type: 'tracker', id: trackerId } as const
  if (decision.kind === 'transition') {
    const { type, geofenceId, geofenceGroupId, cause, at } = decision
    const event = type === 'entry' ? 'onGeofenceEntry' : 'onGeofenceLeave'
    const geofence = { geofenceId, geofenceGroupId, cause }
    return { sourceId, event, organizationId, subject, at, geofence, point: { ...point } }
  }
  const { explicit, startedAt, finishedAt, distance } = decision
  const isStart = decision.kind === 'tripStarted'
  return {
    sourceId,
    event: isStart ? 'onStartTrip' : 'onFinishTrip',
    organizationId,
    subject,
    at: isStart ? startedAt : (finishedAt ?? point.recordedAt),
    trip: { explicit, startedAt, ...(finishedAt !== undefined && { finishedAt }), distance },
    point: { ...point },
  }
}

const skipReason = (
  options: OweOptions,
  eventAgeMs: number,
  automationId: string,
  added: Map<string, number>,
): SkipReason | undefined => {
  if (eventAgeMs > options.maxAgeMs) return 'historical'
  const more = added.get(automationId) ?? 0
  if (options.waiting(automationId) + more >= options.waitingMax) return 'overflow'
  added.set(automationId, more + 1)
  return undefined
}

/** Age of an event when it was logged; a decision of an edit is as old as the point that it decided on. */
const ageMs = (decision: Decision, loggedAt: number): number => {
  const { at } = triggerOf(decision)
  const isFromEdit = decision.kind === 'transition' && decision.cause === 'geofence'
  return loggedAt - (isFromEdit ? Math.min(at, decision.point.recordedAt) : at)
}

/** Looks things up once for all runs that are owed together. */
export class EntryLook {
  private readonly active: ActiveAutomations
  private readonly counts: (row: AutomationRow) => boolean
  private readonly trackers = new Map<string, Promise<TrackerShown | undefined>>()
  private readonly editors = new Map<string, Promise<UserCaller | undefined>>()
  private readonly directory: Directory

  /** @param counts selects the active automations that are looked at */
  constructor(
    active: ActiveAutomations,
    { directory }: OweOptions,
    counts: (row: AutomationRow) => boolean = () => true,
  ) {
    this.active = active
    this.counts = counts
    this.directory = {
      tracker: (organizationId, id, seenAt) =>
        once(this.trackers, `${organizationId}:${id}`, () => directory.tracker(organizationId, id, seenAt)),
      editor: (organizationId, id) =>
        once(this.editors, `${organizationId}:${id}`, () => directory.editor(organizationId, id)),
      user: (...asked) => directory.user(...asked),
      geofence: (...asked) => directory.geofence(...asked),
      inRollout: (editor) => directory.inRollout(editor),
      tripToken: (...asked) => directory.tripToken(...asked),
      subjects: directory.subjects,
    }
  }

  /** A decision about a tracker, with the present state of the records that it refers to. */
  see(trigger: RunTrigger, loggedAt: number): Promise<EventSeen> {
    return seeEvent(this.directory, trigger, loggedAt)
  }

  /**
   * The automations that fire for this event.
   * @param position of the event in the log: automations that were activated before it count
   */
  async concerned(
    trigger: RunTrigger,
    position: number,
    see: () => Promise<EventSeen> | EventSeen,
  ): Promise<AutomationRow[]> {
    const { organizationId, event, geofence } = trigger
    const active = await this.active.of(organizationId, triggerKey(event, geofence?.geofenceGroupId))
    const rows = active.filter((row) => row.activatedPosition < position && this.counts(row))
    if (rows.length === 0) return rows
    const seen = await see()
    const concerned: AutomationRow[] = []
    for (const row of rows) {
      const editor = await this.directory.editor(trigger.organizationId, row.editorId)
      if (editor !== undefined && seen.isFor(editor) && (await matches(row, trigger, seen, editor))) concerned.push(row)
    }
    return concerned
  }
}

/** The automation was found by the group of a geofence event; further rules need the data of the event. */
const matches = async (
  { rules }: AutomationRow,
  trigger: RunTrigger,
  seen: EventSeen,
  editor: UserCaller,
): Promise<boolean> => {
  const { geofenceGroupId: _found, ...further } = rules.fields
  const fields = trigger.geofence === undefined ? rules.fields : further
  if (Object.keys(fields).length === 0) return true
  return matcherOf(fields)(rulesData(trigger.event, await seen.data(editor)))
}

const once = <Value>(known: Map<string, Promise<Value>>, key: string, make: () => Promise<Value>): Promise<Value> => {
  let value = known.get(key)
  if (value === undefined) known.set(key, (value = make()))
  return value
}
