import { ERRORS } from '../kernel/errors.ts'
import { CLOSE, CLOSE_MEANINGS } from '../kit/http/channel.ts'
import type { ChannelDocument, ChannelMessage } from '../kit/http/channel-document.ts'
import { NamedSchemas } from './named-schemas.ts'
import type { ApiInfo } from './options.ts'
import { API_BASE } from './router.ts'

type Json = { [member: string]: unknown }

/** Messages of the ingress itself, on every channel. */
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
    summary: 'Something was wrong with a message, or a subscription has ended; the connection stays open.',
    direction: 'out',
    payload: {
      type: 'object',
      properties: {
        type: { const: 'error' },
        id: { type: 'string', description: 'Of the subscription that it is about.' },
        code: { type: 'string', enum: Object.keys(ERRORS) },
        message: { type: 'string', description: 'One sentence; of a message it names the path and what was expected.' },
      },
      required: ['type', 'code', 'message'],
    },
    examples: [{ type: 'error', id: 's1', code: 'invalid', message: '/interval must be >= 20' }],
  },
]

const CLOSE_CODES = Object.entries(CLOSE).map(([name, code]) => ({
  code,
  name,
  description: CLOSE_MEANINGS[name as keyof typeof CLOSE],
}))
const CLOSE_TABLE = ['| Close code | Meaning |', '| - | - |']
  .concat(CLOSE_CODES.map(({ code, description }) => `| ${code} | ${description} |`))
  .join('\n')

/** The AsyncAPI 3 document of the WebSocket channels. */
export const asyncApiDocument = (documents: readonly ChannelDocument[], info: ApiInfo): Json => {
  const named = new NamedSchemas()
  const channels: Json = {}
  const operations: Json = {}
  const messages: Json = {}
  for (const document of documents) {
    const name = document.path.slice(1)
    const all = [...COMMON, ...document.messages]
    for (const message of all) messages[keyOf(name, message)] = messageOf(message, named)
    channels[name] = {
      address: API_BASE + document.path,
      title: document.title,
      description: `${document.description}\n\n${CLOSE_TABLE}`,
      'x-close-codes': CLOSE_CODES,
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
    components: {
      messages,
      schemas: named.all(),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'Sent with the upgrade, or in a first message `auth`.',
        },
      },
    },
  }
}

const keyOf = (channel: string, message: ChannelMessage): string => `${channel}-${message.name}`

const messageOf = ({ name, summary, contentType, payload, examples }: ChannelMessage, named: NamedSchemas): Json => ({
  name,
  summary,
  contentType: contentType ?? 'application/json',
  payload: named.shown(payload),
  examples: examples.map((example) => ({ payload: example })),
})

const operationOf = (channel: string, action: 'send' | 'receive', messages: readonly ChannelMessage[]): Json => ({
  action,
  channel: { $ref: `#/channels/${channel}` },
  messages: messages.map((message) => ({ $ref: `#/channels/${channel}/messages/${message.name}` })),
})
