import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { AutomationEvent, NamedResource } from './events.ts'

/** Settings of an automation's action, in clear. */
export type Details = JsonObject

export interface DetailsContext {
  /** Writer of the automation, which is bounded by their visibility and permissions. */
  editor: UserCaller
  event: AutomationEvent
  fields: JsonObject
  tables: Pick<TableStore, 'get' | 'getMany'>
  /** Explains why a path names nothing in the event's data; undefined if it may name something. */
  pathFault(path: string): string | undefined
}

/** One of the eight types, as writes and reads need it; its execution is in reactors/dispatch/actions. */
export interface ActionType {
  /** Whether receivers get a signing secret, which is shown once. */
  isSigned: boolean
  /** Permissions required to perform the action, also through an automation. */
  needs: readonly string[]
  /**
   * Brings `automationDetails` into the stored form.
   * @param before previous details; unchanged parts are not refused
   * @throws Failure invalid with a path below /automationDetails
   */
  check(
    details: JsonObject | undefined,
    context: DetailsContext,
    before: Details | undefined,
  ): Details | Promise<Details>
  /** The details as any reader may see them. */
  show(details: Details): JsonObject
  /** Ids of the records that details name, by resource, one or a list each; values that are no text name none. */
  names?(details: Details): { [resource in NamedResource]?: Json }
}

/** Types that this server knows, by `automationType`; others are not available yet. */
export type ActionTypes = { readonly [automationType: string]: ActionType | undefined }
