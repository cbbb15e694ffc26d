import type { JsonSchema } from '../../kernel/json.ts'

/** Content of a webhook for one event, for the OpenAPI document. */
export interface WebhookDocument {
  name: string
  summary: string
  description: string
  payload: JsonSchema
  /** Default: made from the schema. */
  example?: unknown
}
