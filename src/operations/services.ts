import type { FeatureServices } from '../feature.ts'
import type { InTurn } from './in-turn.ts'

export interface OperationServices extends FeatureServices {
  /** Work on whole streams and tables in this process, one after the other. */
  upkeepTurns: InTurn
}
