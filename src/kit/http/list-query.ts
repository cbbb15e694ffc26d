import type { Find } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import {
  assertShown,
  type Personal,
  personalFields,
  type Restricted,
  withoutPersonal,
} from '../../kernel/hidden-fields.ts'
import type { Json, JsonSchema } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'

export const LIMIT_DEFAULT = 20
export const LIMIT_MAX = 500
/** Rows that `page` may skip; clients that walk further use the cursor. */
export const OFFSET_MAX = 100_000

/** Rows of a hub that only some of its users see. */
export interface Audience {
  /** An indexed field of the row: the names of those to whom it belongs. */
  field: string
  /** Names under which rows belong to the caller; undefined for callers who see all. */
  keys(caller: UserCaller): readonly string[] | undefined
}

/** Members that decide which callers see a row. */
export interface Sight {
  /** Names the hub or hubs of a row: rows of other hubs do not exist for the caller. */
  hubField?: string
  audience?: Audience
}

export interface Absent {
  field: string
  of: readonly string[]
}

export interface ListShape extends Sight {
  table: TableDeclaration
  /** Every member that a row may have: the names for `fields`, and all members ever answered. */
  members: readonly string[]
  filters: { [name: string]: JsonSchema }
  /** Schemas of further parameters, by patterns of their names; their conditions are made elsewhere. */
  patterns?: { [pattern: string]: JsonSchema }
  /** Meaning of a filter that is not equality with the field of its name. */
  conditions?: { [name: string]: (value: Json, caller: UserCaller) => NonNullable<Find['where']> }
  /** Filters that take several values, of which a row has any; their argument, and their conditions, is an array. */
  several?: readonly string[]
  /** The indexed field that names which of these members a row lacks, or has empty; others are checked by row. */
  absent?: Absent
  /** Filters on members that no index has, since they are known at answer time only: such a list is walked. */
  computed?: readonly string[]
  /** Fields that `sortBy` may name. */
  sortable: readonly string[]
  /** The order of a list that cannot be sorted otherwise. */
  order?: { field: string; order: 'asc' | 'desc' }
  /** Fields of the table whose names differ from those of `sortBy`. */
  sorts?: { [name: string]: string }
  searchable?: boolean
  /** A member that is an object: `fields` may choose of it as `<member>.<name>`. */
  inner?: string
  /** Members that only the person may see whose record a row is. */
  personal?: Personal
}

export type ListQuery = { [name: string]: unknown } & {
  limit?: number
  page?: number
  cursor?: string
  sortBy?: string
  sortOrder?: 'asc' | 'desc'
  q?: string
  fields?: string
}

/** The id of a record, in a path. Longer ones name nothing. */
export const idSchema = (description: string): JsonSchema => ({
  type: 'string',
  minLength: 1,
  maxLength: 100,
  description,
})

export const FIELDS_PARAMETER: JsonSchema = {
  type: 'string',
  maxLength: 2000,
  description:
    'Names of the fields to answer, separated by commas; `_id` always is. Others are left out, also those that the schema of the answer requires.',
}

const Q_PARAMETER: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  description: 'Beginnings of words that must all occur; without a letter or digit it finds nothing.',
}

export const FIELDS_QUERY: JsonSchema = {
  type: 'object',
  properties: { fields: FIELDS_PARAMETER },
  additionalProperties: false,
}

/** Value of a filter for rows that lack a member, or have it empty. */
export const ABSENT_VALUE = 'null'

/** Values that contain no comma may be sent as one text. */
const takesCommas = ({ format, enum: choices, 'x-commas': commas }: JsonSchema): boolean =>
  format === 'uuid' ||
  commas === true ||
  (choices as unknown[] | undefined)?.every((one) => !String(one).includes(',')) === true

/** The schema of a filter that takes several values; `null` is not allowed where every row has the field. */
export const severalOf = (
  name: string,
  { description, ...one }: JsonSchema,
  how: { isAlwaysThere?: boolean; most?: number } = {},
): JsonSchema => {
  const { 'x-commas': _commas, ...items } = one
  const sent = takesCommas(one) ? 'repeated, or separated by commas' : 'repeated'
  const absent = how.isAlwaysThere === true ? '' : ' `null`: those without one.'
  return {
    type: 'array',
    minItems: 1,
    maxItems: how.most ?? LIMIT_MAX,
    items: how.isAlwaysThere === true ? items : { if: { const: ABSENT_VALUE }, else: items },
    ...(takesCommas(one) && { 'x-commas': true }),
    description: `${description ?? `Those whose \`${name}\` is this.`} Several: any of them, ${sent}.${absent}`,
  }
}

export const SORT_ORDER: JsonSchema = {
  type: 'string',
  enum: ['asc', 'desc'],
  default: 'asc',
  description: 'Without `sortBy` of the time of creation.',
}

/** The query of a list, with further parameters. */
export const listQuerySchema = (shape: ListShape, further?: { [name: string]: JsonSchema }): JsonSchema => ({
  type: 'object',
  properties: {
    ...Object.fromEntries(
      Object.entries(shape.filters).map(([name, schema]) => [
        name,
        shape.several?.includes(name) === true
          ? severalOf(name, schema)
          : { description: `Those whose \`${name}\` is this.`, ...schema },
      ]),
    ),
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT_MAX,
      // With one, a list by ids would have no default of its own.
      ...(shape.several?.includes('_id') === true ? {} : { default: LIMIT_DEFAULT }),
      description:
        shape.several?.includes('_id') === true
          ? `Rows of a page; left out, ${LIMIT_DEFAULT}, or as many as \`_id\` names.`
          : 'Rows of a page.',
    },
    page: { type: 'integer', minimum: 1, maximum: OFFSET_MAX + 1, description: 'From 1; not together with `cursor`.' },
    cursor: { type: 'string', maxLength: 4000, description: '`nextCursor` of the page before.' },
    ...(shape.sortable.length > 0
      ? { sortBy: { type: 'string', enum: [...shape.sortable], description: 'Left out: the order of creation.' } }
      : {}),
    ...(shape.order === undefined && { sortOrder: SORT_ORDER }),
    ...(shape.searchable && { q: Q_PARAMETER }),
    fields: FIELDS_PARAMETER,
    ...further,
  },
  ...(shape.patterns !== undefined && { patternProperties: shape.patterns }),
  additionalProperties: false,
})

/**
 * The only way a row reaches a caller: personal fields are removed, then those that `fields` leaves out; only declared
 * members are ever shown.
 * @throws Failure invalid for a name that no row has, forbidden for a hidden one.
 */
export const shownRow = (
  shape: Pick<ListShape, 'members' | 'inner' | 'personal'>,
  fields: string | undefined,
  viewer: Restricted,
): ((row: Row) => Row) => {
  const show = choosing(shape, fields)
  const personal = personalFields(viewer, shape.personal)
  if (personal.length === 0) return show
  const asked = fields?.split(',').map((name) => name.trim()) ?? []
  return (row) => {
    if (row._id !== viewer.userId) assertShown(personal, asked)
    return show(withoutPersonal(viewer, shape.personal, row))
  }
}

const choosing = (
  { members, inner }: Pick<ListShape, 'members' | 'inner'>,
  fields: string | undefined,
): ((row: Row) => Row) => {
  if (fields === undefined) return choosingAll(members)
  if (inner === undefined) return chooseFields(members, fields)
  const names = fields.split(',').map((name) => name.trim())
  const isInner = (name: string): boolean => name.startsWith(`${inner}.`)
  const chosen = names.filter(isInner).map((name) => name.slice(inner.length + 1))
  const outer = chooseFields(members, ['_id', ...names.filter((name) => !isInner(name))].join())
  return (row) => {
    const values = row[inner] as Row
    const found = chosen.filter((name) => values[name] !== undefined).map((name) => [name, values[name]])
    return chosen.length === 0 ? outer(row) : { [inner]: Object.fromEntries(found), ...outer(row) }
  }
}

const allOf = new WeakMap<readonly string[], (row: Row) => Row>()

const choosingAll = (members: readonly string[]): ((row: Row) => Row) => {
  const known = allOf.get(members)
  if (known !== undefined) return known
  const show = chooseFields(members, members.join())
  allOf.set(members, show)
  return show
}

/** Whether `fields` asks for a member: it names it, or leaves nothing out. */
export const wantsField = (fields: string | undefined, member: string): boolean =>
  fields === undefined || fields.split(',').some((name) => name.trim() === member)

/** Picks the members that `fields` names, and the id; @throws Failure invalid for a name that no row has. */
export const chooseFields = (
  members: readonly string[],
  fields: string | undefined,
  id = '_id',
): ((row: Row) => Row) => {
  const chosen = chosenFields(members, fields, id)
  if (chosen === undefined) return (row) => row
  return (row) => {
    const shown: Row = {}
    for (const name of chosen) if (row[name] !== undefined) shown[name] = row[name]
    return shown
  }
}

/** The names in `fields` and the id, undefined where all are meant; @throws Failure invalid for a name that no row has. */
export const chosenFields = (
  members: readonly string[],
  fields: string | undefined,
  id = '_id',
): string[] | undefined => {
  if (fields === undefined) return undefined
  const names = fields.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !members.includes(name))
  if (unknown !== undefined) throw invalid('/fields', `names an unknown field ${JSON.stringify(unknown)}`)
  return [...new Set([id, ...names])]
}

/** Whether the caller sees a row. `limitsOf` is the same for a list. */
export const seesRow = (caller: UserCaller, row: Row, { hubField, audience }: Sight): boolean => {
  if (hubField !== undefined && !seesHubs(caller, valuesOf(row, hubField))) return false
  const keys = audience?.keys(caller)
  return keys === undefined || valuesOf(row, audience?.field ?? '').some((value) => keys.includes(value))
}

/** Fields, each with the values of which a row that the caller may see has one. */
export const limitsOf = (caller: UserCaller, { hubField, audience }: Sight): [string, readonly string[]][] => {
  const keys = audience?.keys(caller)
  return [
    ...(hubField === undefined || caller.hubIds === 'all' ? [] : [[hubField, caller.hubIds] as const]),
    ...(audience === undefined || keys === undefined ? [] : [[audience.field, keys] as const]),
  ].map(([field, values]) => [field, values])
}

export const valuesOf = (row: Row, field: string): string[] => {
  const value = row[field]
  if (Array.isArray(value)) return value as string[]
  return typeof value === 'string' ? [value] : []
}
