import { STATUS_CODES } from 'node:http'
import { ERRORS } from '../kernel/errors.ts'
import type { JsonSchema } from '../kernel/json.ts'
import type { Answer, AnswerHeader, Method, Route } from '../kit/http/route.ts'
import type { WebhookDocument } from '../kit/http/webhook-document.ts'
import { accessText, securityOf } from './access-text.ts'
import { errorSchema } from './error-schema.ts'
import { exampleOf } from './example.ts'
import { NamedSchemas } from './named-schemas.ts'
import type { ApiInfo } from './options.ts'
import { addressesOf, API_BASE } from './router.ts'

type Json = { [member: string]: unknown }

/** The OpenAPI 3.1 document of these routes and webhooks, from the same schemas that requests are checked with. */
export const openApiDocument = (
  routes: readonly Route[],
  webhooks: readonly WebhookDocument[],
  info: ApiInfo,
): Json => {
  const named = new NamedSchemas()
  named.add('Error', errorSchema)
  const paths: { [path: string]: Json } = {}
  const ofApi = new Set(routes.filter(({ root }) => root !== true).map(({ path }) => path))
  for (const route of routes) {
    for (const { method, path, operationId } of addressesOf(route)) {
      const isRoot = route.root === true
      // A document has each path once; a slash at its end is accepted.
      const shown = isRoot ? path + (ofApi.has(path) ? '/' : '') : path.slice(API_BASE.length)
      const item = (paths[shown] ??= {})
      if (isRoot) item.servers = [{ url: '/' }]
      item[method.toLowerCase()] = operationOf(route, method, operationId, named)
    }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: API_BASE }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    security: [{ bearer: [] }],
    paths,
    webhooks: Object.fromEntries(webhooks.map((webhook) => [webhook.name, webhookOf(webhook, named)])),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An access token, or where points are sent a device key or ingest key.',
        },
      },
      responses: errorResponses(),
      headers: HEADERS,
      parameters: PARAMETERS,
      schemas: named.all(),
    },
  }
}

const operationOf = (route: Route, method: Method, operationId: string, named: NamedSchemas): Json => {
  const needs = accessText(route)
  const operation: Json = {
    operationId,
    summary: route.summary,
    description: route.description === undefined ? needs : `${route.description}\n\n${needs}`,
    tags: [route.tag],
    deprecated: false,
    security: securityOf(route),
  }
  const parameters = parametersOf(route, method, named)
  if (parameters.length > 0) operation.parameters = parameters
  const content = bodyContent(route, named)
  if (content !== undefined) operation.requestBody = { required: route.bodyRequired ?? true, content }
  operation.responses = responsesOf(route, method, named)
  return operation
}

const parametersOf = (route: Route, method: Method, named: NamedSchemas): Json[] => {
  const parameters = Object.entries(route.params ?? {}).map(([name, schema]) =>
    parameterOf('path', name, schema, true, named),
  )
  const required = (route.query?.required ?? []) as string[]
  for (const [name, schema] of Object.entries((route.query?.properties ?? {}) as { [name: string]: JsonSchema }))
    parameters.push(parameterOf('query', name, schema, required.includes(name), named))
  if (method === 'POST' && route.idempotent !== false) parameters.push(referTo('parameters', 'IdempotencyKey'))
  if (method === 'PUT' || method === 'PATCH') parameters.push(referTo('parameters', 'IfMatch'))
  return parameters
}

/** A filter that takes several values (`severalOf`), as clients send it: a single one is no list. */
const oneOrSeveral = (schema: JsonSchema): JsonSchema => {
  const { if: absent, else: value } = (schema.items ?? {}) as { if?: JsonSchema; else?: JsonSchema }
  if (absent === undefined || value === undefined) return schema
  const one = { anyOf: [value, absent] }
  const { minItems, maxItems } = schema
  return { anyOf: [one, { type: 'array', minItems, maxItems, items: one }] }
}

const parameterOf = (
  place: 'path' | 'query',
  name: string,
  { description, ...schema }: JsonSchema,
  required: boolean,
  named: NamedSchemas,
): Json => ({
  name,
  in: place,
  required,
  ...(description !== undefined && { description }),
  schema: named.shown(oneOrSeveral(schema)),
})

const bodyContent = (route: Route, named: NamedSchemas): Json | undefined => {
  const schema = route.bodyShown ?? route.body
  const types = route.rawBody?.contentTypes ?? (schema === undefined ? [] : ['application/json'])
  if (types.length === 0) return undefined
  const media = (type: string): Json => mediaType(schema ?? rawSchema(type), route.bodyExample, named, true)
  return Object.fromEntries(types.map((type) => [type, media(type)]))
}

const rawSchema = (type: string): JsonSchema => {
  if (type === 'application/json' || type.startsWith('multipart/')) return { type: 'object' }
  return { type: 'string', contentMediaType: type }
}

const mediaType = (schema: JsonSchema, example: unknown, named: NamedSchemas, isSent = false): Json => ({
  schema: named.shown(schema, isSent),
  example: example ?? exampleOf(schema),
})

const responsesOf = (route: Route, method: Method, named: NamedSchemas): Json => {
  const responses: Json = {}
  for (const [status, answer] of Object.entries(route.answers)) {
    const headers: AnswerHeader[] = ['X-Request-Id', ...(answer.headers ?? [])]
    if ((route.query?.properties as Json | undefined)?.cursor !== undefined) headers.push('Link')
    if (method !== 'GET') headers.push('Waymark-Pending')
    responses[status] = responseOf(answer, headers, named)
  }
  for (const status of errorStatusesOf(route, method))
    responses[status] ??= { $ref: `#/components/responses/Error${status}` }
  return responses
}

const okSchema: JsonSchema = {
  title: 'Done',
  type: 'object',
  properties: { status: { const: true }, message: { type: 'string' } },
  required: ['status'],
}

const responseOf = (answer: Answer, headers: readonly AnswerHeader[], named: NamedSchemas): Json => {
  const { description, schema, example, contentType: type = 'application/json', alsoAs = {} } = answer
  const isDone = schema === undefined && type === 'application/json'
  const shown = schema ?? (isDone ? okSchema : rawSchema(type))
  const others = Object.entries(alsoAs).map(([other, its = rawSchema(other)]) => {
    const { examples, ...itsSchema } = its
    return [other, mediaType(itsSchema, (examples as unknown[] | undefined)?.[0], named)]
  })
  return {
    description,
    headers: Object.fromEntries(headers.map((name) => [name, referTo('headers', name)])),
    content: {
      [type]: mediaType(shown, example ?? (isDone ? { status: true } : undefined), named),
      ...Object.fromEntries(others),
    },
  }
}

const errorStatusesOf = (route: Route, method: Method): number[] => {
  const statuses = [400, 429, 500, 503]
  if (route.access !== 'public' || route.signsIn === true) statuses.push(401, 403)
  // A body may name a missing record: an organization to switch to, an `_id` that others have.
  const namesInBody = method === 'POST' && route.access !== 'public'
  if (route.params !== undefined || route.rollout !== undefined || namesInBody) statuses.push(404)
  if (method !== 'GET') statuses.push(409)
  if (route.body !== undefined || route.rawBody !== undefined) statuses.push(413, 415)
  if (method === 'POST' && route.idempotent !== false) statuses.push(422)
  return statuses.sort()
}

const errorResponses = (): Json => {
  const statuses = [...new Set(Object.values(ERRORS).map((error) => error.status))]
  return Object.fromEntries(statuses.map((status) => [`Error${status}`, errorResponse(status)]))
}

const errorResponse = (status: number): Json => {
  const rows = Object.entries(ERRORS).filter(([, error]) => error.status === status)
  const examples = Object.fromEntries(
    rows.map(([code, { text }]) => [code, { value: { status: false, message: text, code } }]),
  )
  const headers: AnswerHeader[] = ['X-Request-Id']
  if (status === 401) headers.push('WWW-Authenticate')
  if (status === 429 || status === 503) headers.push('Retry-After')
  if (status === 429) headers.push('RateLimit', 'RateLimit-Policy')
  return {
    description: STATUS_CODES[status],
    headers: Object.fromEntries(headers.map((name) => [name, referTo('headers', name)])),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  }
}

const webhookOf = ({ summary, description, payload, example }: WebhookDocument, named: NamedSchemas): Json => ({
  post: {
    summary,
    description,
    tags: ['Automations'],
    security: [],
    parameters: WEBHOOK_HEADERS,
    requestBody: { required: true, content: { 'application/json': mediaType(payload, example, named) } },
    responses: {
      '2XX': { description: 'Within 15 s: the run has succeeded. Anything else is tried again.' },
      '410': { description: 'The run ends, and its automation is deactivated.' },
    },
  },
})

/** Headers of Standard Webhooks 1.0. */
const WEBHOOK_HEADERS: Json[] = [
  ['webhook-id', 'The same over all attempts: act on it once.'],
  ['webhook-timestamp', 'Seconds since the epoch of this attempt.'],
  ['webhook-signature', '`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`; several while a secret rotates.'],
].map(([name, description]) => ({ name, in: 'header', required: true, description, schema: { type: 'string' } }))

const referTo = (kind: 'headers' | 'parameters', name: string): Json => ({ $ref: `#/components/${kind}/${name}` })

const PARAMETERS: Json = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'The same key and body within 24 h answer the first response again.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    required: false,
    description: 'The version that the client has read, as its `ETag`; 409 when the resource has changed since.',
    schema: { type: 'string' },
  },
}

const text = (description: string): Json => ({ description, schema: { type: 'string' } })

const HEADERS: { [name in AnswerHeader]: Json } = {
  'Accept-Ranges': text('`bytes`: `Range` is honoured.'),
  'Content-Range': text('Which bytes these are, and how many there are: `bytes 0-99/1000`.'),
  'Content-Disposition': text('The name of the file, where the answer is one.'),
  ETag: text('The `version` of the resource in quotes, for `If-Match`; of a file, for `If-None-Match`.'),
  Link: text('`<path>; rel="next"`: the next page, where there is one.'),
  Location: text('Where to read what the request began.'),
  RateLimit: text('What each limit leaves, such as `"token";r=12;t=1`; on every answer where a limit is set.'),
  'RateLimit-Policy': text('Each limit, such as `"token";q=50;w=1`; on every answer where a limit is set.'),
  'Retry-After': { description: 'Seconds until it is worth trying again.', schema: { type: 'integer', minimum: 1 } },
  'Waymark-Pending': {
    description: 'Present when reads may not show the write yet: it took them over 2 s.',
    schema: { const: 'true' },
  },
  'WWW-Authenticate': { description: 'The scheme.', schema: { const: 'Bearer' } },
  'X-Request-Id': text('Names the request in the log of the server, and in the metadata of what it wrote.'),
}
