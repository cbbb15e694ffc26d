import { idFrom } from '../../kit/commands/ids.ts'

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
}

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
  partition: number
  at: number
}

export const automationStream = (automationId: string): string => `automation-${automationId}`

/** Prefixes of the streams of automations; they leave out `automation-runs-…`, which is in another order of size. */
export const AUTOMATION_PREFIXES: readonly string[] = [...'0123456789abcdef'].map((digit) => `automation-${digit}`)

export const RUNS_OWED = 'runsOwed.v1'
export const ATTEMPTS_MADE = 'attemptsMade.v1'
export const RUNS_SKIPPED = 'runsSkipped.v1'
export const RUN_REOPENED = 'runReopened.v1'
/** First append of a new owner of the partition: fences off the one before. */
export const RUNS_TAKEN = 'partitionTaken.v1'

/** `hidden`: the automation's last editor may not see the event. */
export type SkipReason = 'historical' | 'loop' | 'overflow' | 'deactivated' | 'hidden'

/** What happened, by ids and measurements: names and addresses are read anew at each attempt. */
export interface RunTrigger {
  /** `_id` of the transition or trip. */
  sourceId: string
  event: AutomationEvent
  organizationId: string
  trackerId: string
  at: number
  geofence?: { geofenceId: string; geofenceGroupId: string; cause: string }
  trip?: { explicit: boolean; startedAt: number; finishedAt?: number; distance: number }
  point: { recordedAt: number; lat: number; lng: number; [measure: string]: unknown }
}

export interface RunsOwed {
  /** Revision in `transitions-<partition>` of the event that led to this. */
  sourceRevision: number
  /** Nothing more is owed for that event after this one. */
  complete: boolean
  /** Sequence of the first run here; the others follow without gaps, over the whole partition. */
  firstSequence: number
  owed: { trigger: RunTrigger; runs: { automationId: string; reason?: SkipReason }[] }[]
}

export interface AttemptMade {
  runId: string
  automationId: string
  organizationId: string
  at: number
  durationMs: number
  statusCode?: number
  error?: string
  /** First 1 KiB of the answer, encrypted: a receiver may echo names. */
  answer?: string
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
  runIds: string[]
}

export interface RunReopened {
  runId: string
  automationId: string
  sequence: number
  failures: number
  trigger: RunTrigger
  dueAt: number
}

export const runsStream = (partition: number): string => `automation-runs-${partition}`

/** The id of a run, and of its webhook over all attempts. */
export const runIdOf = (trigger: RunTrigger, automationId: string): string =>
  idFrom('run', trigger.sourceId, trigger.event, automationId)
