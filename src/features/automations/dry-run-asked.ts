import type { UserCaller } from '../../kernel/caller.ts'

/** Event of a dry run: a sample, or one made from an existing record. */
export interface DryRunAsked {
  now: number
  caller: UserCaller
  subject?: { field: 'taskId' | 'recordId' | 'trackerId'; id: string }
}
