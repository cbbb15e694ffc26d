import { isDeepStrictEqual } from 'node:util'
import type { JsonSchema } from '../kernel/json.ts'

type Shown = { [keyword: string]: unknown }

const NAME = /^[A-Z][A-Za-z0-9]*$/
const IN_LISTS = ['oneOf', 'anyOf', 'allOf', 'prefixItems']
const IN_MEMBERS = ['items', 'additionalProperties', 'unevaluatedProperties', 'not', 'if', 'then', 'else']

/**
 * Brings schemas into the form of documents: one whose `title` is a name becomes a component that others refer to, and
 * an object of any content is marked as such, since generators take it for an empty one otherwise.
 */
export class NamedSchemas {
  private readonly components = new Map<string, Shown>()

  /** @throws Error when another schema has the name. */
  add(name: string, schema: JsonSchema, isSent = false): void {
    const { title: _title, ...shown } = this.inside(schema, isSent)
    const known = this.components.get(name)
    if (known === undefined) this.components.set(name, shown)
    else if (!isDeepStrictEqual(known, shown)) throw new Error(`two different schemas have the title ${name}`)
  }

  /** `isSent`: of a body. A default is described in words there: generators take a member that has one for required. */
  shown(schema: JsonSchema, isSent = false): Shown {
    if (typeof schema.title !== 'string' || !NAME.test(schema.title)) return this.inside(schema, isSent)
    this.add(schema.title, schema, isSent)
    return { $ref: `#/components/schemas/${schema.title}` }
  }

  all(): { [name: string]: Shown } {
    return Object.fromEntries([...this.components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  private inside(schema: JsonSchema, isSent: boolean): Shown {
    const { $id: _local, $defs: _named, ...shown } = (isSent ? withoutDefaults(schema) : schema) as Shown
    const inner = (one: unknown): unknown =>
      typeof one === 'object' && one !== null ? this.shown(one as JsonSchema, isSent) : one
    if (typeof shown.properties === 'object')
      shown.properties = Object.fromEntries(
        Object.entries(shown.properties as object).map(([name, one]) => [name, inner(one)]),
      )
    for (const keyword of IN_LISTS)
      if (Array.isArray(shown[keyword])) shown[keyword] = (shown[keyword] as unknown[]).map(inner)
    for (const keyword of IN_MEMBERS) if (shown[keyword] !== undefined) shown[keyword] = inner(shown[keyword])
    const isFree = isObject(shown) && Object.keys(shown).every((keyword) => !SAYS_MORE.has(keyword))
    return isFree ? { ...shown, additionalProperties: true } : shown
  }
}

/** Keywords that describe the content of an object. */
const SAYS_MORE = new Set([
  ...IN_LISTS,
  ...IN_MEMBERS,
  'properties',
  'patternProperties',
  'propertyNames',
  'const',
  'enum',
  '$ref',
])

const isObject = ({ type }: Shown): boolean => type === 'object' || (Array.isArray(type) && type.includes('object'))

/** The default in words. */
const withoutDefaults = (schema: JsonSchema): JsonSchema => {
  if (schema.default === undefined) return schema
  const { default: value, description, ...rest } = schema
  const words = `Default: \`${JSON.stringify(value)}\`.`
  return { ...rest, description: description === undefined ? words : `${description} ${words}` }
}
