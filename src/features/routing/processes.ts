import type { ProcessKey } from '../../kit/commands/process.ts'

export interface DispatchData {
  routingResultId: string
  /** By route: the user of its vehicle, and their tasks. */
  routes: { userId: string; taskIds: string[] }[]
}

/** Process of a routing result: its tasks are assigned, then it is dispatched. */
export const DISPATCH_ROUTES: ProcessKey<DispatchData> = { name: 'dispatch-routes' }
