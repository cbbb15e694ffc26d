import type { ProcessKey } from '../../kit/commands/process.ts'

export interface DispatchData {
  routingResultId: string
  /** By route: who has its vehicle, and which tasks they get. */
  routes: { userId: string; taskIds: string[] }[]
}

/** About a routing result: its tasks are assigned, and then it is dispatched. */
export const DISPATCH_ROUTES: ProcessKey<DispatchData> = { name: 'dispatch-routes' }
