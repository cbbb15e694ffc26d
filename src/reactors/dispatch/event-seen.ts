import type { UserCaller } from '../../kernel/caller.ts'

/** Key of the former names of a record's fields: the present name by each former one. It is never sent. */
export const FORMER_NAMES = Symbol('former names')

export type EventData = { [member: string]: unknown; [FORMER_NAMES]?: ReadonlyMap<string, string> }

/** Users whose restrictions limit the data. */
export type Viewer = Pick<UserCaller, 'permissions' | 'permissionDetails' | 'userId'>

/** An event with the present state of the records that it refers to. */
export interface EventSeen {
  /** Whether an editor of automations may see it. */
  isFor(editor: UserCaller): boolean
  /** Data of a webhook about it, as far as the viewer may see it: its schema is in event-table.ts. */
  data(viewer: Viewer): EventData | Promise<EventData>
}
