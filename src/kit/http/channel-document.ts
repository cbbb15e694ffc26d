import type { JsonSchema } from '../../kernel/json.ts'

/** One kind of message of a channel, as the AsyncAPI document describes it. */
export interface ChannelMessage {
  /** Unique within the channel, such as `points`. */
  name: string
  summary: string
  /** `in`: the client sends it; `out`: the server does. */
  direction: 'in' | 'out'
  /** Default `application/json`. */
  contentType?: string
  payload: JsonSchema
  examples: readonly unknown[]
}

/** A WebSocket channel with all its messages; declared by the channel's owner. `auth` and `error` are added by the ingress. */
export interface ChannelDocument {
  /** Below /api/v3, such as `/ingest`; the `path` of the Channel. */
  path: string
  title: string
  description: string
  messages: readonly ChannelMessage[]
}
