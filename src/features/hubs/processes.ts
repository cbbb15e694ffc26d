import type { JsonObject } from '../../kernel/json.ts'
import type { ProcessKey } from '../../kit/commands/process.ts'

export interface MakeHubData {
  hubId: string
  values: JsonObject
  /** In whose list of hubs it comes. */
  userId: string
}

/** About the hub: somebody who sees some hubs only makes one, and has it. */
export const MAKE_HUB: ProcessKey<MakeHubData> = { name: 'make-hub' }
