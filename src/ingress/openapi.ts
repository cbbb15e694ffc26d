import { STATUS_CODES } from 'node:http'
import { ERRORS } from '../kernel/errors.ts'
import type { JsonSchema } from '../kernel/json.ts'
import type { Answer, Method, Route } from '../kit/http/route.ts'
import { exampleOf } from './example.ts'
import type { ApiInfo } from './options.ts'
import { addressesOf, API_BASE } from './router.ts'

type Json = { [member: string]: unknown }

/** The OpenAPI 3.1 document of these routes, from the same schemas that requests are checked with. */
export const openApiDocument = (routes: readonly Route[], info: ApiInfo): Json => {
  const paths: { [path: string]: Json } = {}
  for (const route of routes) {
    for (const { method, path, operationId } of addressesOf(route)) {
      const isRoot = route.root === true
      const shown = isRoot ? path : path.slice(API_BASE.length)
      const item = (paths[shown] ??= {})
      if (isRoot) item.servers = [{ url: '/' }]
      item[method.toLowerCase()] = operationOf(route, method, operationId)
    }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: API_BASE }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An access token, or where points are sent a device key or ingest key.',
        },
      },
      schemas: { Error: errorSchema },
      responses: errorResponses(),
    },
  }
}

const operationOf = (route: Route, method: Method, operationId: string): Json => {
  const operation: Json = { operationId, summary: route.summary, tags: [route.tag], deprecated: false }
  if (route.access === 'public') operation.security = []
  if (typeof route.access === 'object') operation.description = `Needs the permission \`${route.access.permission}\`.`
  const parameters = parametersOf(route, method)
  if (parameters.length > 0) operation.parameters = parameters
  const body = bodyOf(route)
  if (body !== undefined) operation.requestBody = body
  operation.responses = responsesOf(route, method)
  return operation
}

const parametersOf = (route: Route, method: Method): Json[] => {
  const parameters: Json[] = Object.entries(route.params ?? {}).map(([name, schema]) => ({
    name,
    in: 'path',
    required: true,
    schema: clean(schema),
  }))
  const required = (route.query?.required ?? []) as string[]
  for (const [name, schema] of Object.entries((route.query?.properties ?? {}) as { [name: string]: JsonSchema })) {
    const { description, ...rest } = schema
    parameters.push({
      name,
      in: 'query',
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: clean(rest),
    })
  }
  if (method === 'POST' && route.idempotent !== false) {
    const description = 'The same key and body within 24 h answer the first response again.'
    parameters.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description,
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    })
  }
  if (method === 'PUT' || method === 'PATCH') {
    const description = 'The version that the client has read, as its `ETag`; 409 when the resource has changed since.'
    parameters.push({ name: 'If-Match', in: 'header', required: false, description, schema: { type: 'string' } })
  }
  return parameters
}

const bodyOf = (route: Route): Json | undefined => {
  if (route.rawBody !== undefined) {
    const content = Object.fromEntries(
      route.rawBody.contentTypes.map((type) => [type, mediaType(route.body ?? rawSchema(type), route.bodyExample)]),
    )
    return { required: route.bodyRequired ?? true, content }
  }
  if (route.body === undefined) return undefined
  return {
    required: route.bodyRequired ?? true,
    content: { 'application/json': mediaType(route.body, route.bodyExample) },
  }
}

const rawSchema = (type: string): JsonSchema => {
  if (type.includes('json') || type.startsWith('multipart/')) return { type: 'object' }
  return { type: 'string', contentMediaType: type }
}

const mediaType = (schema: JsonSchema, example: unknown): Json => ({
  schema: clean(schema),
  example: example ?? exampleOf(schema),
})

const responsesOf = (route: Route, method: Method): Json => {
  const responses: Json = {}
  for (const [status, answer] of Object.entries(route.answers)) responses[status] = responseOf(answer)
  for (const status of errorStatusesOf(route, method))
    responses[status] ??= { $ref: `#/components/responses/Error${status}` }
  return responses
}

const okSchema: JsonSchema = {
  type: 'object',
  properties: { status: { const: true }, message: { type: 'string' } },
  required: ['status'],
}

const responseOf = ({ description, schema, example, contentType }: Answer): Json => {
  const type = contentType ?? 'application/json'
  const shown = schema ?? (type === 'application/json' ? okSchema : rawSchema(type))
  return {
    description,
    content: {
      [type]: mediaType(
        shown,
        example ?? (schema === undefined && type === 'application/json' ? { status: true } : undefined),
      ),
    },
  }
}

const errorStatusesOf = (route: Route, method: Method): number[] => {
  const statuses = [400, 429, 500, 503]
  if (route.access !== 'public') statuses.push(401, 403)
  if (route.params !== undefined || route.rollout !== undefined) statuses.push(404)
  if (method !== 'GET') statuses.push(409)
  if (route.body !== undefined || route.rawBody !== undefined) statuses.push(413, 415)
  if (method === 'POST' && route.idempotent !== false) statuses.push(422)
  return statuses.sort()
}

const errorSchema: JsonSchema = {
  type: 'object',
  properties: {
    status: { const: false },
    message: { type: 'string', description: 'One sentence a person can act on.' },
    code: { type: 'string', enum: Object.keys(ERRORS) },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: { path: { type: 'string', description: 'A JSON pointer.' }, message: { type: 'string' } },
        required: ['path', 'message'],
      },
    },
  },
  required: ['status', 'message', 'code'],
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
  const headers: Json = {}
  if (status === 401) headers['WWW-Authenticate'] = { schema: { const: 'Bearer' } }
  if (status === 429 || status === 503)
    headers['Retry-After'] = { description: 'Seconds.', schema: { type: 'integer' } }
  return {
    description: STATUS_CODES[status],
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  }
}

/** Formats of our own are no formats of the standard, but may stand in a schema; ids are local to the checker. */
const clean = (schema: JsonSchema): JsonSchema => {
  const { $id: _local, ...rest } = schema
  return rest
}
