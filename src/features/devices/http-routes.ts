import { breathe } from '../../kernel/breath.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import type { DevicePoints } from './device-points.ts'
import { type DeviceRequest, HTTP_PROTOCOLS, type HttpProtocol } from './http-protocols.ts'

/** `/in/<protocol>`: bodies and answers are those of apps that exist, not of the API. */
export const deviceRoutes = (points: DevicePoints): Route[] =>
  HTTP_PROTOCOLS.flatMap((protocol) => [
    routeOf(points, protocol, 'POST'),
    ...(protocol.takesGet === true ? [routeOf(points, protocol, 'GET')] : []),
  ])

const routeOf = (points: DevicePoints, protocol: HttpProtocol, method: 'GET' | 'POST'): Route => {
  const { path, operation, clients, bodyBytesMax, example } = protocol
  const operationId = `${method === 'GET' ? 'send' : 'store'}${operation}Points`
  return route<{ [name: string]: unknown }, Uint8Array | undefined>({
    method,
    path: `/in/${path}`,
    root: true,
    operationId,
    aliases: [{ path: `/in/${path}/{key}`, operationId: `${operationId}ByKey` }],
    summary: `Store points of ${clients}`,
    description: `Answers once they are durable. ${WHERE_THE_KEY_IS}`,
    tag: 'Devices',
    access: 'points',
    forDevices: true,
    idempotent: false,
    params: { key: { type: 'string', description: 'A device or ingest key.' } },
    query: ANY_PARAMETERS,
    ...(method === 'POST' && {
      rawBody: { contentTypes: ['application/json', '*/*'] },
      bodyRequired: false,
      bodyExample: example,
      bodyBytesMax,
    }),
    answers: { 200: answerOf(protocol) },
    handler: async (request) => {
      await points.take(request.caller, namedHeard(protocol, request))
      const headers = { 'content-type': 'application/json; charset=utf-8' }
      await breathe()
      return { raw: JSON.stringify(protocol.answer), headers } satisfies Reply
    },
  })
}

const namedHeard = (protocol: HttpProtocol, request: RouteRequest<DeviceRequest['query'], Uint8Array | undefined>) => {
  const { query, body = NO_BYTES, headers, credential, now } = request
  const heard = protocol.read({ query, body, header: (name) => headers.get(name), credential, now })
  // Where the key stands in `id`, it is no name.
  return heard.name === credential ? { points: heard.points } : heard
}

const NO_BYTES = new Uint8Array()

const WHERE_THE_KEY_IS =
  'The key is the bearer, the password of HTTP Basic, `?key=`, `id` or `deviceid` where that is a key, or the end of the path. What can never be stored is answered as taken and counted in `rejected` of the tracker.'

const ANY_PARAMETERS: JsonSchema = { type: 'object', additionalProperties: true }

const answerOf = ({ answer }: HttpProtocol): Route['answers'][number] => ({
  description: 'Everything that can be stored is durable.',
  schema: Array.isArray(answer)
    ? { type: 'array', maxItems: 0, items: { type: 'object', additionalProperties: false, properties: {} } }
    : {
        type: 'object',
        required: Object.keys(answer as object),
        properties: Object.fromEntries(
          Object.entries(answer as object).map(([name, value]) => [name, { const: value }]),
        ),
      },
  example: answer,
})
