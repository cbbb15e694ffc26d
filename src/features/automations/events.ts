import { decodeJson, type Fact, type RecordedEvent } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { Chain } from './chain.ts'

/** What the streams `automation-<id>` and `automation-runs-<partition>` hold. */

/** The ten events, each with its data type. */
export const EVENT_DATA_TYPES = {
  onTaskCreated: 'task',
  onTaskAssigned: 'task',
  onTaskFinished: 'task',
  onDataSourceCreated: 'data',
  onRoutingResultFinished: 'routingResult',
  onRoutingResultDispatched: 'routingResult',
  onStartTrip: 'locationHistory',
  onFinishTrip: 'locationHistory',
  onGeofenceEntry: 'locationHistory',
  onGeofenceLeave: 'locationHistory',
} as const

export type AutomationEvent = keyof typeof EVENT_DATA_TYPES

export const isGeofenceEvent = (event: string): boolean => event === 'onGeofenceEntry' || event === 'onGeofenceLeave'

export const AUTOMATION_CREATED = 'automationCreated.v1'
export const AUTOMATION_CHANGED = 'automationChanged.v1'
export const AUTOMATION_SECRET_ROTATED = 'automationSecretRotated.v1'
export const AUTOMATION_DEACTIVATED = 'automationDeactivated.v1'
export const AUTOMATION_DELETED = 'automationDeleted.v1'
/** Someone asked for another attempt of a run that had ended. */
export const RUN_RETRY_ASKED = 'automationRunRetryAsked.v1'

export interface Rules {
  fields: { [key: string]: unknown }
  schema: { [keyword: string]: unknown }
}

/** What an editor decides about an automation. */
export interface AutomationContent {
  name: string
  event: AutomationEvent
  dataType: string
  automationType: string
  /** The details as JSON text, encrypted: addresses and headers of receivers carry credentials. */
  details: string
  rules: Rules
  isActive: boolean
  /** What the details name, in clear. */
  names?: Names
}

export type NamedResource = 'flows' | 'hubs' | 'dataTypes' | 'teams' | 'users' | 'roles'

/** Ids of records, by resource. */
export type Names = { [resource in NamedResource]?: string[] }

export interface AutomationCreated {
  _id: string
  organizationId: string
  content: AutomationContent
  /** `whsec_…`, encrypted. */
  secret: string
  /** Bounds what the automation may see. */
  editorId: string
  /** ms since the epoch, as in all these events. */
  at: number
}

export interface AutomationChanged {
  content: AutomationContent
  editorId: string
  at: number
}

export interface AutomationSecretRotated {
  secret: string
  /** Until when the secret before signs too. */
  previousUntil: number
  at: number
}

export interface AutomationDeactivated {
  /** `gone`: the receiver answered 410; `failing`: five days of nothing but failures. */
  reason: 'gone' | 'failing'
  at: number
}

export interface AutomationDeleted {
  organizationId: string
  at: number
}

export interface RunRetryAsked {
  runId: string
  /** Whose stream of runs it is in. */
  partition: number
  at: number
  /** The run as it is shown. */
  run: Pick<RunReopened, 'sequence' | 'failures' | 'trigger' | 'owedAt'>
}

export const automationStream = (automationId: string): string => `automation-${automationId}`

/** Prefixes of the streams of automations; they leave out `automation-runs-…`, which is in another order of size. */
export const AUTOMATION_PREFIXES: readonly string[] = [...'0123456789abcdef'].map((digit) => `automation-${digit}`)

export const RUNS_OWED = 'runsOwed.v2'
export const ATTEMPTS_MADE = 'attemptsMade.v1'
export const RUNS_SKIPPED = 'runsSkipped.v2'
export const RUN_REOPENED = 'runReopened.v2'
/** First append of a new owner of the partition: fences off the one before. */
export const RUNS_TAKEN = 'partitionTaken.v1'

/** `hidden`: the automation's last editor may not see the event. */
export type SkipReason = 'historical' | 'loop' | 'overflow' | 'deactivated' | 'hidden'

/** What an event is about: the runs of an automation for one subject keep their order. */
export interface Subject {
  type: 'tracker' | 'task' | 'record' | 'routingResult'
  id: string
  /** Hub that a task was in then: its users have the runs listed. */
  hubId?: string
}

/** What happened, by ids and measurements: names and addresses are read anew at each attempt. */
export interface RunTrigger {
  /** Id of the fact: of the transition, the trip, the event of a task. */
  sourceId: string
  event: AutomationEvent
  organizationId: string
  subject: Subject
  at: number
  /** Revision of the fact in the subject's own stream, where it has one: what was before is read there. */
  revision?: number
  /** Position of that fact in the whole log: lists have it before an action reads them. */
  position?: number
  /** How many automations led to the event, and how many runs each of its runs may lead to; absent for one that none led to. */
  chain?: Chain
  /** Present for geofence events. */
  geofence?: { geofenceId: string; geofenceGroupId: string; cause: string }
  /** Present for trip events. */
  trip?: { explicit: boolean; startedAt: number; finishedAt?: number; distance: number }
  /** Where the tracker was. */
  point?: { recordedAt: number; lat: number; lng: number; [measure: string]: unknown }
}

/**
 * What owes runs: `transitions`, by the revision in `transitions-<partition>`, or `log`, by the position of an event in
 * the whole log (tasks, records, routing results).
 */
export type RunSource = 'transitions' | 'log'

export interface RunsOwed {
  source: RunSource
  /** Where the event that led to this stands in its source. */
  sourceAt: number
  /** Nothing more is owed for that event after this one. */
  complete: boolean
  /** When, ms since the epoch: the runs are listed by it. */
  owedAt: number
  /** Sequence of the first run here; the others follow without gaps, over the whole partition. */
  firstSequence: number
  owed: { trigger: RunTrigger; runs: { automationId: string; reason?: SkipReason }[] }[]
}

export interface AttemptMade {
  runId: string
  automationId: string
  organizationId: string
  /** When the run was owed. */
  owedAt: number
  at: number
  durationMs: number
  /** Only of what goes out over HTTP. */
  statusCode?: number
  error?: string
  /** First 1 KiB of the answer, encrypted: a receiver may echo names. */
  answer?: string
  /** What was written here, as JSON text of ids alone: in clear. */
  wrote?: string
  /** Failed attempts up to and with this one. */
  failures: number
  /** Where the run stands after it. */
  status: 'pending' | 'succeeded' | 'dead'
  /** When the next attempt is due by the clock of then; only while pending. */
  dueAt?: number
  /** How long after the end of this one the next attempt is due: no step of a clock makes a run wait longer. */
  delayMs?: number
}

export interface AttemptsMade {
  attempts: AttemptMade[]
}

export interface RunsSkipped {
  automationId: string
  organizationId: string
  reason: SkipReason
  runs: { runId: string; owedAt: number }[]
}

export interface RunReopened {
  runId: string
  automationId: string
  sequence: number
  failures: number
  trigger: RunTrigger
  owedAt: number
  dueAt: number
}

export const runsStream = (partition: number): string => `automation-runs-${partition}`
export const partitionOfRuns = (stream: string): number => Number(stream.slice(runsStream(0).length - 1))

/** The id of a run, and of its webhook over all attempts. */
export const runIdOf = (trigger: RunTrigger, automationId: string): string =>
  idFrom('run', trigger.sourceId, trigger.event, automationId)

export const RUN_FACTS: readonly string[] = [RUNS_OWED, ATTEMPTS_MADE, RUNS_SKIPPED, RUN_REOPENED]

/** A fact of `automation-runs-<partition>`. Each reader gets its own copy, which it may change. */
export const runFactOf = ({ type, data }: RecordedEvent): Fact => ({ type, data: decodeJson(data) })
