import type { JsonObject } from '../../kernel/json.ts'

/** What an automation of a type is told to do, in clear. */
export type Details = JsonObject

/** One of the eight types, as writes and reads of automations need it; what it does is in reactors/dispatch/actions. */
export interface ActionType {
  /** Whether receivers are given a signing secret, which is answered once. */
  isSigned: boolean
  /**
   * Brings `automationDetails` into the form that is kept.
   * @param before as they were; what did not change since then is not refused
   * @throws Failure invalid with a path below /automationDetails
   */
  check(details: JsonObject | undefined, before: Details | undefined): Details
  /** The details as anybody may read them. */
  show(details: Details): JsonObject
}

/** The types that this server knows, by `automationType`; others are not available yet. */
export type ActionTypes = { readonly [automationType: string]: ActionType | undefined }
