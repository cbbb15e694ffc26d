import { APPEND_BYTES_MAX } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import {
  RUNS_OWED,
  runIdOf,
  type RunsOwed,
  type RunTrigger,
  type SkipReason,
} from '../../features/automations/events.ts'
import { matcherOf } from '../../features/automations/rules.ts'
import { AUTOMATIONS, triggerKey, type AutomationRow } from '../../features/automations/views.ts'
import type { Decided, Decision } from '../../features/transitions/events.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Fact } from '../../kernel/event.ts'
import type { Directory, TrackerShown } from './directory.ts'
import { eventData, maySee, seenAt, type EventData } from './event-data.ts'
import type { PendingRuns } from './pending-runs.ts'
import type { TransitionEntry } from './transition-entry.ts'
import { ageMs, triggerOf } from './trigger-of.ts'

export interface OweOptions {
  tables: TableStore
  directory: Directory
  now: () => number
  /** Events older than this when logged owe no run, ms. */
  maxAgeMs: number
  /** Runs of one automation that may wait. */
  waitingMax: number
  /** Runs of an automation that are owed and not paid, over all partitions of this process. */
  waiting: (automationId: string) => number
}

type Owed = RunsOwed['owed'][number]

/** Runs of one event. */
export const RUNS_PER_EVENT_MAX = 500
const EVENT_BYTES_MAX = Math.floor(APPEND_BYTES_MAX / 4)
const PAGE = 500

/**
 * What one event of a transition stream owes: a run for each decision and each active automation that it concerns, as
 * facts to append. Runs that were owed before the entry was cut short (`pending.partial`) are left out, so each is owed
 * once, whatever has changed since.
 */
export const oweRuns = async (
  options: OweOptions,
  pending: PendingRuns,
  { revision, position, decided }: TransitionEntry,
): Promise<Fact<string, RunsOwed>[]> => {
  if (decided === undefined) return []
  const look = new EntryLook(options)
  const added = new Map<string, number>()
  const owed: Owed[] = []
  for (const decision of decided.decisions) {
    const trigger = triggerOf(decision)
    const concerned = await look.concerned(trigger, decided, position)
    const automations =
      pending.partial.size === 0
        ? concerned
        : concerned.filter(({ _id }) => !pending.partial.has(runIdOf(trigger, _id)))
    if (automations.length === 0) continue
    const runs = automations.map(({ _id: automationId }) => {
      const reason = skipReason(options, decision, decided, automationId, added)
      return { automationId, ...(reason !== undefined && { reason }) }
    })
    for (let from = 0; from < runs.length; from += RUNS_PER_EVENT_MAX)
      owed.push({ trigger, runs: runs.slice(from, from + RUNS_PER_EVENT_MAX) })
  }
  return owed.length === 0 && pending.partial.size === 0
    ? []
    : factsOf(revision, options.now(), owed, pending.place.sequence)
}

const skipReason = (
  options: OweOptions,
  decision: Decision,
  decided: Decided,
  automationId: string,
  added: Map<string, number>,
): SkipReason | undefined => {
  if (ageMs(decision, decided.sourceLoggedAt) > options.maxAgeMs) return 'historical'
  const more = added.get(automationId) ?? 0
  if (options.waiting(automationId) + more >= options.waitingMax) return 'overflow'
  added.set(automationId, more + 1)
  return undefined
}

/** Cuts what is owed into events that an append takes. */
const factsOf = (
  sourceAt: number,
  owedAt: number,
  owed: readonly Owed[],
  firstSequence: number,
): Fact<string, RunsOwed>[] => {
  const facts: Fact<string, RunsOwed>[] = []
  let part: Owed[] = []
  let runs = 0
  let bytes = 0
  const close = (complete: boolean): void => {
    const data: RunsOwed = { source: 'transitions', sourceAt, complete, owedAt, firstSequence, owed: part }
    facts.push({ type: RUNS_OWED, data })
    firstSequence += runs
    part = []
    runs = bytes = 0
  }
  for (const one of owed) {
    const size = JSON.stringify(one).length * 2
    if (part.length > 0 && (runs + one.runs.length > RUNS_PER_EVENT_MAX || bytes + size > EVENT_BYTES_MAX)) close(false)
    part.push(one)
    runs += one.runs.length
    bytes += size
  }
  close(true)
  return facts
}

/** Looks things up once for all decisions of an entry. */
class EntryLook {
  private readonly options: OweOptions
  private readonly automations = new Map<string, Promise<AutomationRow[]>>()
  private readonly trackers = new Map<string, Promise<TrackerShown | undefined>>()
  private readonly editors = new Map<string, Promise<UserCaller | undefined>>()

  constructor(options: OweOptions) {
    this.options = options
  }

  /** The automations that fire for this event, which stands at a position of the log. */
  async concerned(trigger: RunTrigger, { sourceLoggedAt }: Decided, position: number): Promise<AutomationRow[]> {
    const { organizationId, subject } = trigger
    const rows = (await this.active(trigger)).filter((row) => row.activatedPosition < position)
    if (rows.length === 0) return rows
    const { directory } = this.options
    const tracker = await once(this.trackers, `${organizationId}:${subject.id}`, () =>
      directory.tracker(organizationId, subject.id, Math.min(seenAt(trigger), sourceLoggedAt)),
    )
    const concerned: AutomationRow[] = []
    for (const row of rows) {
      const editor = await once(this.editors, `${organizationId}:${row.editorId}`, () =>
        directory.editor(organizationId, row.editorId),
      )
      if (editor === undefined || !maySee(directory, editor, trigger, tracker)) continue
      if (await this.matches(row, trigger, tracker, editor)) concerned.push(row)
    }
    return concerned
  }

  private active({ organizationId, event, geofence }: RunTrigger): Promise<AutomationRow[]> {
    const key = triggerKey(event, geofence?.geofenceGroupId)
    return once(this.automations, `${organizationId}:${key}`, async () => {
      const rows: AutomationRow[] = []
      let after: string | undefined
      do {
        const page = await this.options.tables.find<AutomationRow>(AUTOMATIONS.name, organizationId, {
          where: { trigger: key },
          limit: PAGE,
          ...(after !== undefined && { after }),
        })
        rows.push(...page.rows.map(({ row }) => row))
        after = page.next ?? undefined
      } while (after !== undefined)
      return rows
    })
  }

  /** The group of a geofence event was what the automation was found by; further rules need the data of the event. */
  private async matches(
    { rules }: AutomationRow,
    trigger: RunTrigger,
    tracker: TrackerShown | undefined,
    editor: UserCaller,
  ): Promise<boolean> {
    const { geofenceGroupId, ...further } = rules.fields
    const fields = trigger.geofence === undefined ? rules.fields : further
    if (Object.keys(fields).length === 0) return true
    const data: EventData = await eventData(this.options.directory, trigger, tracker, editor)
    return matcherOf(fields)(data)
  }
}

const once = <Value>(known: Map<string, Promise<Value>>, key: string, make: () => Promise<Value>): Promise<Value> => {
  let value = known.get(key)
  if (value === undefined) known.set(key, (value = make()))
  return value
}
