import type { JsonSchema } from '../../kernel/json.ts'

/** What a webhook sends for one event, for the OpenAPI document. */
export interface WebhookDocument {
  /** The event. */
  name: string
  summary: string
  description: string
  payload: JsonSchema
  /** Default: made from the schema. */
  example?: unknown
}
