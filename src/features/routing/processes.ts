import type { ProcessKey } from '../../kit/commands/process.ts'

export interface DispatchData {
  routingResultId: string
  /** By route: its vehicle (absent in those begun by earlier versions), the user of it, and their tasks. */
  routes: { vehicleId?: string; userId: string; taskIds: string[] }[]
}

/** Process of a routing result: its tasks are assigned, then it is dispatched. */
export const DISPATCH_ROUTES: ProcessKey<DispatchData> = { name: 'dispatch-routes' }
