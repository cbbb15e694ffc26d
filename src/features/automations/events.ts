import { decodeJson, type Fact, type RecordedEvent } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { Chain } from './chain.ts'

/** Events of the streams `automation-<id>` and `automation-runs-<partition>`. */

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
/** Another attempt was requested for a run that had ended. */
export const RUN_RETRY_ASKED = 'automationRunRetryAsked.v1'

export interface Rules {
  fields: { [key: string]: unknown }
  schema: { [keyword: string]: unknown }
}

/** Content of an automation that an editor sets. */
export interface AutomationContent {
  name: string
  event: AutomationEvent
  dataType: string
  automationType: string
  /** Details as JSON text, encrypted: addresses and headers of receivers contain credentials. */
  details: string
  rules: Rules
  isActive: boolean
  /** Records named in the details, in clear. */
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
  /** User whose visibility bounds the automation. */
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
  /** Time until which the previous secret signs too. */
  previousUntil: number
  at: number
}

export interface AutomationDeactivated {
  /** `gone`: the receiver answered 410; `failing`: every attempt failed for five days. */
  reason: 'gone' | 'failing'
  at: number
}

export interface AutomationDeleted {
  organizationId: string
  at: number
}

export interface RunRetryAsked {
  runId: string
  partition: number
  at: number
  /** The run as shown. */
  run: Pick<RunReopened, 'sequence' | 'failures' | 'trigger' | 'owedAt'>
}

export const automationStream = (automationId: string): string => `automation-${automationId}`

/** Stream prefixes of automations without `automation-runs-…`, which are orders of magnitude larger. */
export const AUTOMATION_PREFIXES: readonly string[] = [...'0123456789abcdef'].map((digit) => `automation-${digit}`)

export const RUNS_OWED = 'runsOwed.v2'
export const ATTEMPTS_MADE = 'attemptsMade.v1'
export const RUNS_SKIPPED = 'runsSkipped.v2'
export const RUN_REOPENED = 'runReopened.v2'
/** First append by a new owner of the partition: fences off the previous owner. */
export const RUNS_TAKEN = 'partitionTaken.v1'

/** `hidden`: the automation's last editor may not see the event. */
export type SkipReason = 'historical' | 'loop' | 'overflow' | 'deactivated' | 'hidden'

/** Subject of an event: the runs of an automation for one subject keep their order. */
export interface Subject {
  type: 'tracker' | 'task' | 'record' | 'routingResult'
  id: string
  /** Hub of a task at that time: its users may list the runs. */
  hubId?: string
}

/** Content of an event as ids and measurements: names and addresses are read again at each attempt. */
export interface RunTrigger {
  /** Id of the source fact: a transition, a trip, a task event. */
  sourceId: string
  event: AutomationEvent
  organizationId: string
  subject: Subject
  at: number
  /** Revision of the fact in the subject's own stream, if it has one: the previous state is read there. */
  revision?: number
  /** Position of that fact in the whole log: tables must reach it before an action reads them. */
  position?: number
  /** Automations that led to the event, and runs that each of its runs may cause; absent if none led to it. */
  chain?: Chain
  geofence?: { geofenceId: string; geofenceGroupId: string; cause: string }
  trip?: { explicit: boolean; startedAt: number; finishedAt?: number; distance: number }
  /** Position of the tracker. */
  point?: { recordedAt: number; lat: number; lng: number; [measure: string]: unknown }
}

/**
 * Source of runs: `transitions`, by the revision in `transitions-<partition>`, or `log`, by the position of an event in
 * the whole log (tasks, records, routing results).
 */
export type RunSource = 'transitions' | 'log'

export interface RunsOwed {
  source: RunSource
  /** Revision or position of the causing event in its source. */
  sourceAt: number
  /** Whether this event owes the last runs of its cause. */
  complete: boolean
  /** ms since the epoch; runs are listed by it. */
  owedAt: number
  /** Sequence of the first run here; the others follow without gaps, across the whole partition. */
  firstSequence: number
  owed: { trigger: RunTrigger; runs: { automationId: string; reason?: SkipReason }[] }[]
}

export interface AttemptMade {
  runId: string
  automationId: string
  organizationId: string
  owedAt: number
  at: number
  durationMs: number
  /** Present only for HTTP actions. */
  statusCode?: number
  error?: string
  /** First 1 KiB of the answer, encrypted: a receiver may echo names. */
  answer?: string
  /** Records written by the run, as JSON text of ids alone: in clear. */
  wrote?: string
  /** Failed attempts up to and including this one. */
  failures: number
  /** Status of the run after this attempt. */
  status: 'pending' | 'succeeded' | 'dead'
  /** Time of the next attempt by the clock at the time of logging; only while pending. */
  dueAt?: number
  /** Delay from the end of this attempt to the next: a step of the clock never prolongs the wait. */
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

/** Id of a run, and of its webhook across all attempts. */
export const runIdOf = (trigger: RunTrigger, automationId: string): string =>
  idFrom('run', trigger.sourceId, trigger.event, automationId)

export const RUN_FACTS: readonly string[] = [RUNS_OWED, ATTEMPTS_MADE, RUNS_SKIPPED, RUN_REOPENED]

/** A fact of `automation-runs-<partition>`. Each reader gets its own mutable copy. */
export const runFactOf = ({ type, data }: RecordedEvent): Fact => ({ type, data: decodeJson(data) })
