import type { ActionType, Details } from '../../../features/automations/action-type.ts'
import type { RunTrigger } from '../../../features/automations/events.ts'
import type { AutomationRow } from '../../../features/automations/views.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { EventData } from '../event-seen.ts'

/** What an action is given: one run of one automation, with what the event says as things are now. */
export interface Work {
  automation: AutomationRow
  details: Details
  run: { runId: string; sequence: number; trigger: RunTrigger }
  /** As far as the automation's last editor may see it. */
  data: EventData
}

export type Outcome =
  | {
      kind: 'done'
      /** What the log of runs keeps of an answer from outside. */
      statusCode?: number
      answer?: string
    }
  | {
      kind: 'failed'
      statusCode?: number
      answer?: string
      /** One short sentence without secrets. */
      error?: string
      /** It asks not to be tried again before; at most a day counts. */
      retryAfterMs?: number
      /** No further attempt can help: the run is dead, and what is gone for good ends the automation too. */
      ends?: 'run' | 'automation'
    }

/**
 * One type of automation. An attempt may be made again, by another process too: a webhook repeats its `webhook-id`, and
 * an action inside is a command whose ids follow from `runId`, so that the second time changes nothing. It throws only
 * for failures of the service's own (an engine is down), which use up no attempt.
 */
export interface Action extends ActionType {
  attempt(work: Work): Promise<Outcome>
  /** What an attempt would do, for a dry run; nothing is done. */
  preview(work: Work): Promise<JsonObject>
}

/** The types that are built, by `automationType`. */
export type Actions = { readonly [automationType: string]: Action | undefined }
