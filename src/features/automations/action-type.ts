import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { AutomationEvent, NamedResource } from './events.ts'

/** What an automation of a type is told to do, in clear. */
export type Details = JsonObject

/** What the check of details may look at. */
export interface DetailsContext {
  /** Writer of the automation: what they may not see or do, it may not either. */
  editor: UserCaller
  event: AutomationEvent
  /** The fields of its rules. */
  fields: JsonObject
  tables: Pick<TableStore, 'get' | 'getMany'>
  /** Why a path names nothing in the data of the event; undefined when it may name something. */
  pathFault(path: string): string | undefined
}

/** One of the eight types, as writes and reads of automations need it; what it does is in reactors/dispatch/actions. */
export interface ActionType {
  /** Whether receivers are given a signing secret, which is answered once. */
  isSigned: boolean
  /** Permissions without which nobody may have an automation do this, nor do it themselves. */
  needs: readonly string[]
  /**
   * Brings `automationDetails` into the form that is kept.
   * @param before as they were; what did not change since then is not refused
   * @throws Failure invalid with a path below /automationDetails
   */
  check(
    details: JsonObject | undefined,
    context: DetailsContext,
    before: Details | undefined,
  ): Details | Promise<Details>
  /** The details as anybody may read them. */
  show(details: Details): JsonObject
  /** Ids of the records that details name, by resource, one or a list each; what is no text is none. */
  names?(details: Details): { [resource in NamedResource]?: Json }
}

/** The types that this server knows, by `automationType`; others are not available yet. */
export type ActionTypes = { readonly [automationType: string]: ActionType | undefined }
