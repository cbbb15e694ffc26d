import type { JsonSchema } from '../../kernel/json.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import type { DevicePoints } from './device-points.ts'
import { type DeviceRequest, HTTP_PROTOCOLS, type HttpProtocol } from './http-protocols.ts'

/** `/in/<protocol>`: bodies and answers follow existing apps, not the API. */
export const deviceRoutes = (points: DevicePoints): Route[] =>
  HTTP_PROTOCOLS.flatMap((protocol) => [
    routeOf(points, protocol, 'POST', false),
    routeOf(points, protocol, 'POST', true),
    ...(protocol.takesGet === true
      ? [routeOf(points, protocol, 'GET', false), routeOf(points, protocol, 'GET', true)]
      : []),
  ])

const routeOf = (points: DevicePoints, protocol: HttpProtocol, method: 'GET' | 'POST', isKeyInPath: boolean): Route => {
  const { path, operation, clients, bodyBytesMax, contentType, example } = protocol
  return route<{ [name: string]: unknown }, Uint8Array | undefined>({
    method,
    path: `/in/${path}${isKeyInPath ? '/{key}' : ''}`,
    root: true,
    operationId: `${method === 'GET' ? 'send' : 'store'}${operation}Points${isKeyInPath ? 'ByKey' : ''}`,
    summary: `Store points of ${clients}`,
    description: `Answers once they are durable. ${WHERE_THE_KEY_IS}`,
    tag: 'Devices',
    access: 'points',
    forDevices: true,
    idempotent: false,
    ...(isKeyInPath && { params: { key: { type: 'string', description: 'A device or ingest key.' } } }),
    query: ANY_PARAMETERS,
    ...(method === 'POST' && {
      rawBody: { contentTypes: [contentType, '*/*'] },
      bodyRequired: false,
      bodyExample: example,
      bodyBytesMax,
    }),
    answers: { 200: answerOf(protocol) },
    handler: async (request) => {
      await points.takeAll(request.caller, namedHeard(protocol, request))
      const { raw, type } = textOf(protocol.answer)
      return { raw, headers: { 'content-type': type } } satisfies Reply
    },
  })
}

const textOf = (answer: unknown): { raw: string; type: string } =>
  answer === undefined
    ? { raw: '', type: 'text/plain; charset=utf-8' }
    : { raw: JSON.stringify(answer), type: 'application/json; charset=utf-8' }

const namedHeard = (protocol: HttpProtocol, request: RouteRequest<DeviceRequest['query'], Uint8Array | undefined>) => {
  const { query, body = NO_BYTES, headers, credential, now } = request
  const heard = protocol.read({ query, body, header: (name) => headers.get(name), credential, now })
  // If the key is in `id`, `id` is no name.
  return heard.map((one) => (one.name === credential ? { points: one.points } : one))
}

const NO_BYTES = new Uint8Array()

const WHERE_THE_KEY_IS =
  'The key is the bearer, the password of HTTP Basic, `?key=`, `id` or `deviceid` where that is a key, or the end of the path. What can never be stored is answered as taken and counted in `rejected` of the tracker.'

const ANY_PARAMETERS: JsonSchema = { type: 'object', additionalProperties: true }

const answerOf = ({ answer }: HttpProtocol): Route['answers'][number] => {
  const description = 'Everything that can be stored is durable.'
  if (answer === undefined) return { description, contentType: 'text/plain', example: '' }
  const list = { type: 'array', maxItems: 0, items: { type: 'object', additionalProperties: true } }
  return { description, schema: Array.isArray(answer) ? list : constantsOf(answer as object), example: answer }
}

const constantsOf = (members: object): JsonSchema => ({
  type: 'object',
  required: Object.keys(members),
  properties: Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { const: value }])),
})
