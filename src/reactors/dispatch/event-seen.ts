import type { UserCaller } from '../../kernel/caller.ts'

/** Under it stands what the fields of a record were called before: the name of now by each former one. It is never sent. */
export const FORMER_NAMES = Symbol('former names')

export type EventData = { [member: string]: unknown; [FORMER_NAMES]?: ReadonlyMap<string, string> }

/** Users whose restrictions bound what is said. */
export type Viewer = Pick<UserCaller, 'permissions' | 'permissionDetails' | 'userId'>

/** An event with what it refers to, as that is now. */
export interface EventSeen {
  /** Whether an editor of automations may see it. */
  isFor(editor: UserCaller): boolean
  /** What a webhook says about it, as far as the viewer may see that: its schema is in event-table.ts. */
  data(viewer: Viewer): EventData | Promise<EventData>
}
