import type { ActionType, Details } from '../../../features/automations/action-type.ts'
import type { RunTrigger } from '../../../features/automations/events.ts'
import type { AutomationRow } from '../../../features/automations/views.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { EventData } from '../event-seen.ts'

/** What an action is given: one run of one automation, with what the event says as things are now. */
export interface Work {
  automation: AutomationRow
  details: Details
  /** `owedAt` in ms since the epoch: nothing of the run was done before. */
  run: { runId: string; sequence: number; trigger: RunTrigger; owedAt: number }
  /** No attempt of the run can have begun before, in this process or another: nothing was written by it. */
  isFirst: boolean
  /** The automation's last editor, as they may see and do now; has the permissions that the type needs. */
  editor: UserCaller
  /** As far as the editor may see it; paths of values and templates are looked up in `rulesData` of it. */
  data: EventData
  /** A link of the service's own in the data, which is no text of others. */
  link?: string
  /** Whether a user may see what the event is about, as things are now. */
  isSeenBy(user: UserCaller): boolean
}

export type Outcome =
  | {
      kind: 'done'
      /** What the log of runs keeps of an answer from outside. */
      statusCode?: number
      answer?: string
      /** What was written here: ids alone, which the log of runs keeps in clear. */
      wrote?: JsonObject
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
  /** The editor may not do this now: the run is skipped. */
  | { kind: 'hidden' }

/**
 * One type of automation. An attempt may be made again, by another process too: a webhook repeats its `webhook-id`, and
 * an action inside is a command whose ids follow from `runId`, so that the second time changes nothing. It throws only
 * for failures of the service's own (an engine is down), which use up no attempt.
 */
export interface Action extends ActionType {
  /** Whether it calls somebody outside, whose health bounds the attempts; what happens to one run inside says nothing of others. */
  isOutside(details: Details): boolean
  /** Whether it reads what lists must have first: what led to the run, or what came before that. */
  readsLists(details: Details, trigger: RunTrigger): boolean
  attempt(work: Work): Promise<Outcome>
  /** What an attempt would do, for a dry run; nothing is done. */
  preview(work: Work): Promise<JsonObject>
}

/** The types that are built, by `automationType`. */
export type Actions = { readonly [automationType: string]: Action | undefined }
