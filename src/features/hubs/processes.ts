import type { JsonObject } from '../../kernel/json.ts'
import type { ProcessKey } from '../../kit/commands/process.ts'

export interface MakeHubData {
  hubId: string
  values: JsonObject
  /** User or service account whose list of hubs it joins. */
  userId: string
  isService?: true
}

/** Process of a hub: a user or service account that sees only some hubs creates one, and gets to see it. */
export const MAKE_HUB: ProcessKey<MakeHubData> = { name: 'make-hub' }
