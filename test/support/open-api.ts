import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { addFormats } from '../../src/kit/http/formats.ts'

// biome-ignore lint/suspicious/noExplicitAny: parts of a document
type Json = any

export interface Operation {
  method: string
  /** As documented, with `{name}` for parameters. */
  path: string
  /** Whether it stands at the root and not below /api/v3. */
  isRoot: boolean
  operationId: string
  isPublic: boolean
  params: string[]
  query: string[]
  /** Media type, schema and example of the body. */
  body?: { type: string; schema: Json; example: Json }
  responses: { [status: string]: Json }
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** Every operation of an OpenAPI document, in its order. */
export const operationsOf = (document: Json): Operation[] =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] !== undefined).map((method) => operationOf(path, method, item)),
  )

const operationOf = (path: string, method: string, item: Json): Operation => {
  const { operationId, security, parameters = [], requestBody, responses } = item[method]
  const named = (place: string): string[] =>
    parameters.filter((one: Json) => one.in === place).map((one: Json) => one.name)
  const [type, media] = Object.entries<Json>(requestBody?.content ?? {})[0] ?? []
  return {
    method: method.toUpperCase(),
    path,
    isRoot: item.servers !== undefined,
    operationId,
    isPublic: security?.length === 0,
    params: named('path'),
    query: named('query'),
    ...(type === undefined ? {} : { body: { type, schema: media.schema, example: media.example } }),
    responses,
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })
addFormats(ajv)
ajv.addFormat('binary', true)

/** What a value does wrong by a schema; a member that a schema with properties does not list is wrong too. */
export const faultsOf = (schema: Json, value: unknown, { closed = true } = {}): string[] => {
  const check: ValidateFunction = ajv.compile(closed ? closedSchema(schema) : schema)
  if (check(value)) return []
  return (check.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** The schema with `unevaluatedProperties: false` wherever properties are listed and nothing else is said. */
const closedSchema = (schema: Json, isPart = false): Json => {
  if (typeof schema !== 'object' || schema === null) return schema
  const closed: Json = { ...schema }
  for (const name of ['items', 'additionalProperties', 'not'])
    if (typeof closed[name] === 'object') closed[name] = closedSchema(closed[name])
  for (const name of ['oneOf', 'anyOf', 'allOf'])
    if (closed[name]) closed[name] = closed[name].map((part: Json) => closedSchema(part, true))
  if (closed.properties === undefined) return closed
  closed.properties = Object.fromEntries(
    Object.entries(closed.properties).map(([name, part]) => [name, closedSchema(part)]),
  )
  const isOpen = closed.additionalProperties === undefined && closed.unevaluatedProperties === undefined
  if (!isPart && isOpen) closed.unevaluatedProperties = false
  return closed
}
