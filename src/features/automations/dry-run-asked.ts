import type { UserCaller } from '../../kernel/caller.ts'

/** The event that a dry run is about: a sample, or one of what is there. */
export interface DryRunAsked {
  now: number
  caller: UserCaller
  subject?: { field: 'taskId' | 'recordId' | 'trackerId'; id: string }
}
