import type { UserCaller } from '../../kernel/caller.ts'

export type EventData = { [member: string]: unknown }

/** Whose restrictions bound what is said. */
export type Viewer = Pick<UserCaller, 'permissions' | 'permissionDetails' | 'userId'>

/** An event with what it refers to, as that is now. */
export interface EventSeen {
  /** Whether an editor of automations may see it. */
  isFor(editor: UserCaller): boolean
  /** What a webhook says about it, as far as the viewer may see that: its schema is in event-table.ts. */
  data(viewer: Viewer): EventData | Promise<EventData>
}
