import type { ActionType, Details } from '../../../features/automations/action-type.ts'
import type { RunTrigger } from '../../../features/automations/events.ts'
import type { AutomationRow } from '../../../features/automations/views.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { EventData } from '../event-seen.ts'

/** Input of an action: one run of one automation, with the present state of the event's data. */
export interface Work {
  automation: AutomationRow
  details: Details
  /** `owedAt` in ms since the epoch: nothing of the run was done before. */
  run: { runId: string; sequence: number; trigger: RunTrigger; owedAt: number }
  /** No attempt of the run can have begun before, in this process or another: it has written nothing. */
  isFirst: boolean
  /** The automation's last editor, with their present sight and rights; has the permissions that the type needs. */
  editor: UserCaller
  /** As far as the editor may see it; paths of values and templates are looked up in `rulesData` of it. */
  data: EventData
  /** A link of the service's own in the data, not a text of others. */
  link?: string
  /** Whether a user may now see the subject of the event. */
  isSeenBy(user: UserCaller): boolean
}

export type Outcome =
  | {
      kind: 'done'
      /** The part of an outside answer that the log of runs keeps. */
      statusCode?: number
      answer?: string
      /** Ids of the records written here, which the log of runs keeps in clear. */
      wrote?: JsonObject
    }
  | {
      kind: 'failed'
      statusCode?: number
      answer?: string
      /** One short sentence without secrets. */
      error?: string
      /** Requested pause before the next attempt; at most a day counts. */
      retryAfterMs?: number
      /** No further attempt can help: the run is dead, and if the cause is permanent the automation ends too. */
      ends?: 'run' | 'automation'
    }
  /** The editor may not do this now: the run is skipped. */
  | { kind: 'hidden' }

/**
 * One type of automation. An attempt may be repeated, by another process too: a webhook repeats its `webhook-id`, and
 * an action inside is a command whose ids are derived from `runId`, so that the second time changes nothing. It throws
 * only for failures of the service's own (an engine is down), which use up no attempt.
 */
export interface Action extends ActionType {
  /** Whether it calls an outside server, whose health bounds the attempts; one run inside tells nothing of others. */
  isOutside(details: Details): boolean
  /** Whether it reads lists that must first include the cause of the run, or events before that. */
  readsLists(details: Details, trigger: RunTrigger): boolean
  attempt(work: Work): Promise<Outcome>
  /** Effect of an attempt, for a dry run; nothing is done. */
  preview(work: Work): Promise<JsonObject>
}

/** The types that are built, by `automationType`. */
export type Actions = { readonly [automationType: string]: Action | undefined }
