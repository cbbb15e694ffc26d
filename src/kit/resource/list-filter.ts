import type { Find } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Json, JsonSchema } from '../../kernel/json.ts'

/** A filter of the list beside those that `indexes.equality` makes of fields. */
export interface ListFilter {
  schema: JsonSchema
  /** It takes several values, and `null`; `where` then gets an array, which is empty for `null` alone. */
  several?: true
  /** The condition on fields that are declared `equality`, internal ones too. */
  where(value: Json, caller: UserCaller): NonNullable<Find['where']>
}
