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
  description: string
  /** As documented. */
  parameters: Json[]
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
  const { operationId, security, description, parameters = [], requestBody, responses } = item[method]
  const named = (place: string): string[] =>
    parameters.filter((one: Json) => one.in === place).map((one: Json) => one.name)
  const [type, media] = Object.entries<Json>(requestBody?.content ?? {})[0] ?? []
  return {
    method: method.toUpperCase(),
    path,
    isRoot: item.servers !== undefined,
    operationId,
    isPublic: security?.length === 0,
    description,
    parameters,
    params: named('path'),
    query: named('query'),
    ...(type === undefined ? {} : { body: { type, schema: media.schema, example: media.example } }),
    responses,
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })
addFormats(ajv)
ajv.addFormat('binary', true)

/**
 * What a value does wrong by a schema of the document; a member that a schema with properties does not list is wrong too.
 */
export const faultsOf = (schema: Json, value: unknown, { document = {} as Json } = {}): string[] => {
  const components = Object.entries<Json>(document.components?.schemas ?? {})
  const schemas = Object.fromEntries(components.map(([name, one]) => [name, closedSchema(one, document)]))
  const check: ValidateFunction = ajv.compile({ ...closedSchema(schema, document), components: { schemas } })
  if (check(value)) return []
  return (check.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** The schema with `unevaluatedProperties: false` wherever properties are listed and nothing else is said. */
const closedSchema = (schema: Json, document: Json, isPart = false): Json => {
  if (typeof schema !== 'object' || schema === null) return schema
  // What is a part of something larger is closed by that, so it cannot be closed by itself.
  if (isPart && schema.$ref !== undefined)
    return closedSchema(document.components.schemas[schema.$ref.split('/').at(-1)], document, true)
  const closed: Json = { ...schema }
  for (const name of ['items', 'additionalProperties', 'not'])
    if (typeof closed[name] === 'object') closed[name] = closedSchema(closed[name], document)
  for (const name of ['oneOf', 'anyOf', 'allOf'])
    if (closed[name]) closed[name] = closed[name].map((part: Json) => closedSchema(part, document, name === 'allOf'))
  if (closed.properties !== undefined)
    closed.properties = Object.fromEntries(
      Object.entries(closed.properties).map(([name, part]) => [name, closedSchema(part, document)]),
    )
  const lists = closed.properties !== undefined || closed.allOf !== undefined
  const isOpen = closed.additionalProperties === undefined && closed.unevaluatedProperties === undefined
  if (lists && !isPart && isOpen) closed.unevaluatedProperties = false
  return closed
}

/** Where a schema takes ids, as JSON pointers with 0 for the items of lists. */
export const referencesIn = (schema: Json, document: Json): string[] => {
  const found = new Set<string>()
  const walk = (part: Json, pointer: string, within: readonly string[]): void => {
    if (typeof part !== 'object' || part === null) return
    if (part.$ref !== undefined) {
      const name = part.$ref.split('/').at(-1)
      if (!within.includes(name)) walk(document.components.schemas[name], pointer, [...within, name])
      return
    }
    if (part.format === 'uuid') found.add(pointer)
    for (const [name, one] of Object.entries(part.properties ?? {})) walk(one, `${pointer}/${name}`, within)
    walk(part.items, `${pointer}/0`, within)
    for (const name of ['oneOf', 'anyOf', 'allOf']) for (const one of part[name] ?? []) walk(one, pointer, within)
  }
  walk(schema, '', [])
  return [...found]
}

/** Every schema of a document with where it stands, those of its components by their names. */
export const schemasOf = (document: Json): { where: string; schema: Json; isAnswered: boolean }[] => {
  const found: { where: string; schema: Json; isAnswered: boolean }[] = []
  const walk = (schema: Json, where: string, isAnswered: boolean): void => {
    if (typeof schema !== 'object' || schema === null || schema.$ref !== undefined) return
    found.push({ where, schema, isAnswered })
    for (const [name, part] of Object.entries(schema.properties ?? {})) walk(part, `${where}.${name}`, isAnswered)
    for (const name of ['items', 'additionalProperties']) walk(schema[name], `${where}.${name}`, isAnswered)
    for (const name of ['oneOf', 'anyOf', 'allOf'])
      for (const [i, part] of (schema[name] ?? []).entries()) walk(part, `${where}.${name}.${i}`, isAnswered)
  }
  for (const [name, schema] of Object.entries<Json>(document.components.schemas))
    walk(schema, name, !/^New|Patch$|Replacement$|^(BacktestQuestion|PointBatch|Feature|FeatureCollection)$/.test(name))
  for (const { operationId, body, responses } of operationsOf(document)) {
    if (body !== undefined) walk(body.schema, `${operationId}: body`, false)
    for (const [status, { content = {} }] of Object.entries(responses))
      for (const [type, media] of Object.entries<Json>(content))
        walk(media.schema, `${operationId}: ${status} ${type}`, true)
  }
  return found
}
