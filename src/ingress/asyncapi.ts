import type { ChannelDocument, ChannelMessage } from '../kit/http/channel-document.ts'
import type { ApiInfo } from './options.ts'
import { API_BASE } from './router.ts'

type Json = { [member: string]: unknown }

/** Messages that the door itself takes and sends, on every channel. */
const COMMON: readonly ChannelMessage[] = [
  {
    name: 'auth',
    summary:
      'Authenticates the connection within 5 s of its opening, unless the upgrade carried a bearer token; later on it renews the token.',
    direction: 'in',
    payload: {
      type: 'object',
      properties: { type: { const: 'auth' }, token: { type: 'string' } },
      required: ['type', 'token'],
      additionalProperties: false,
    },
    examples: [{ type: 'auth', token: '<ACCESS_TOKEN>' }],
  },
  {
    name: 'error',
    summary: 'Something was wrong with a message; the connection stays open.',
    direction: 'out',
    payload: {
      type: 'object',
      properties: {
        type: { const: 'error' },
        id: { type: 'string' },
        code: { type: 'string' },
        message: { type: 'string' },
      },
      required: ['type', 'code', 'message'],
    },
    examples: [{ type: 'error', code: 'invalid', message: '/bbox must have 4 items' }],
  },
]

const CLOSE_CODES = `Close codes: 4400 not a message of this channel, 4401 unauthenticated (also when the token expires or is revoked; a new \`auth\` before that renews it), 4403 forbidden, 4408 no \`auth\` in time, 4429 too fast, 1009 a frame too large, 1012 restart (connect again with back-off).`

/** The AsyncAPI 3 document of the WebSocket channels. */
export const asyncApiDocument = (documents: readonly ChannelDocument[], info: ApiInfo): Json => {
  const channels: Json = {}
  const operations: Json = {}
  const messages: Json = {}
  for (const document of documents) {
    const name = document.path.slice(1)
    const all = [...COMMON, ...document.messages]
    for (const message of all) messages[keyOf(name, message)] = messageOf(message)
    channels[name] = {
      address: API_BASE + document.path,
      title: document.title,
      description: `${document.description}\n\n${CLOSE_CODES}`,
      messages: Object.fromEntries(
        all.map((message) => [message.name, { $ref: `#/components/messages/${keyOf(name, message)}` }]),
      ),
      bindings: {
        ws: { method: 'GET', headers: { type: 'object', properties: { authorization: { type: 'string' } } } },
      },
    }
    operations[`${name}Receive`] = operationOf(
      name,
      'receive',
      all.filter((message) => message.direction === 'in'),
    )
    operations[`${name}Send`] = operationOf(
      name,
      'send',
      all.filter((message) => message.direction === 'out'),
    )
  }
  return {
    asyncapi: '3.0.0',
    info,
    defaultContentType: 'application/json',
    servers: {
      self: {
        host: '{host}',
        protocol: 'ws',
        variables: { host: { default: '127.0.0.1:8080' } },
        security: [{ $ref: '#/components/securitySchemes/bearer' }],
      },
    },
    channels,
    operations,
    components: { messages, securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  }
}

const keyOf = (channel: string, message: ChannelMessage): string => `${channel}-${message.name}`

const messageOf = ({ name, summary, contentType, payload, examples }: ChannelMessage): Json => ({
  name,
  summary,
  contentType: contentType ?? 'application/json',
  payload,
  ...(examples.length === 0 ? {} : { examples: examples.map((example) => ({ payload: example })) }),
})

const operationOf = (channel: string, action: 'send' | 'receive', messages: readonly ChannelMessage[]): Json => ({
  action,
  channel: { $ref: `#/channels/${channel}` },
  messages: messages.map((message) => ({ $ref: `#/channels/${channel}/messages/${message.name}` })),
})
