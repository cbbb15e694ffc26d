import type { Conditions, Find, Found, StoredRow, TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { assertShown, personalFields, withoutPersonal } from '../../kernel/hidden-fields.ts'
import type { Json } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { wordsOf, wordsOfRow } from '../../kernel/words.ts'
import { absencesOf, askedFor, hasAny, isIndexed, withAbsent } from './asked-filters.ts'
import {
  ABSENT_VALUE,
  limitsOf,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  OFFSET_MAX,
  shownRow,
  type ListQuery,
  type ListShape,
} from './list-query.ts'
import { nextLink } from './next-link.ts'
import type { PageTexts } from './page-texts.ts'
import { fingerprintOf, openCursor, sealCursor } from './question-cursor.ts'
import type { Reply } from './route.ts'

/** Conditions on rows beside the filters that a shape declares. */
export interface ListConditions {
  /** Replaces a filter on the same field. */
  where?: Find['where']
  every?: Find['every']
  ranges?: Find['ranges']
  /** Condition that no index covers: such a list is walked. */
  keep?(row: Row): boolean
}

export interface ListRequest extends ListConditions {
  tables: Pick<TableStore, 'find'>
  /** Default: the caller's organization. */
  scope?: string
  caller: UserCaller
  query: ListQuery
  /** Path below the root of the server, for the Link header: `/api/v3/hubs`. */
  path: string
  /** Adds members known only at answer time, to many rows at once. */
  present?: (rows: readonly Row[]) => Promise<readonly Row[]> | readonly Row[]
  /** Replaces `present` where the shown row depends on the row, `fields` and `view` alone. */
  texts?: { kept: PageTexts; view: string; show(row: Row): Row }
  /** As in the request of the route: `data` holds rows, where `texts` would give JSON. */
  takesRows?: boolean
  /** Members of a row that `present`, `texts` and the shape read, where these are known. */
  reads?: readonly string[]
  range?: Find['range']
  /** Replaces the words of `q`. */
  words?: Find['words']
  /** Replaces the order that the query asks for. */
  sort?: Find['sort']
  /** False: `total` is left out. */
  isCounted?: boolean
}

/** A table for questions that no row can match. */
export const NO_ROWS: Pick<TableStore, 'find'> = { find: async () => ({ rows: [], total: 0, next: null }) }

/** Rows of one answer, and the start of the next one. */
interface Page {
  rows: readonly Row[]
  /** The rows as they were found. */
  stored: readonly StoredRow[]
  total: number | undefined
  /** Null at the end. */
  next: string | null
}

/** `stored` is the row as it was found, where `row` is its answered form. */
type Keep = (row: Row, stored?: Row) => boolean

const EMPTY: Page = { rows: [], stored: [], total: 0, next: null }

/** Answers a page of a table according to section 1 of the API's conventions. */
export const answerList = async (shape: ListShape, asking: ListRequest): Promise<Reply> => {
  const request = { scope: asking.caller.organizationId, ...asking }
  const { query, path } = request
  const limit =
    query.limit ?? Math.max(LIMIT_DEFAULT, shape.several?.includes('_id') ? [query._id ?? []].flat().length : 0)
  const show = showing(shape, query.fields, request.caller)
  const asked = askedOf(query)
  assertShown(personalFields(request.caller, shape.personal), asked.flatMap(namedBy))
  if (query.page !== undefined && query.cursor !== undefined)
    throw invalid('/page', 'must not be sent together with cursor')
  const page = query.cursor === undefined ? (query.page ?? 1) : null
  const bounds = request.ranges?.map(({ keptWithin: _within, unless: _unless, ...range }) => range)
  const fingerprint = fingerprintOf([shape.table.name, request.scope, asked, request.range, bounds])
  const after = query.cursor === undefined ? undefined : openCursor(query.cursor, fingerprint)
  const question = questionOf(shape, request)
  const keep = keepOf(shape, request)
  const place = { limit, after, offset: offsetOf(page ?? 1, limit) }
  const found =
    question === undefined
      ? EMPTY
      : keep === undefined
        ? await pageOf(shape, request, { ...question, ...onlyRead(request) }, place)
        : await walk(shape, request, question, place, keep)
  const nextCursor = found.next === null ? null : sealCursor(found.next, fingerprint)
  const body = { ...(request.isCounted !== false && { total: found.total }), page, limit, nextCursor }
  const headers = nextCursor === null ? undefined : { link: nextLink(path, query, nextCursor) }
  const { texts } = request
  const isText = request.takesRows !== true && keep === undefined
  if (texts === undefined || !isText || personalFields(request.caller, shape.personal).length > 0) {
    const rows = texts === undefined ? found.rows : found.rows.map((row) => texts.show(row))
    return { body: { data: rows.map(show), ...body }, headers }
  }
  const view = JSON.stringify([texts.view, query.fields])
  return { data: texts.kept.ofPage(found.stored, view, (row) => show(texts.show(row))), body, headers }
}

/** Made when the first row is shown, as most pages are kept; names of fields are checked at once. */
const showing = (shape: ListShape, fields: string | undefined, caller: UserCaller): ((row: Row) => Row) => {
  let show = fields === undefined ? undefined : shownRow(shape, fields, caller)
  return (row) => {
    show ??= shownRow(shape, fields, caller)
    return show(row)
  }
}

/** Rows that others may ask for again are remembered whole. */
const onlyRead = ({ takesRows, reads }: ListRequest): Pick<Find, 'members'> =>
  takesRows === true && reads !== undefined ? { members: reads } : {}

type Scoped = ListRequest & { scope: string }

interface PageStart {
  limit: number
  after: string | undefined
  offset: number
}

const pageOf = async (
  shape: ListShape,
  { tables, scope, present, isCounted = true }: Scoped,
  question: Omit<Find, 'limit'>,
  { limit, after, offset }: PageStart,
): Promise<Page> => {
  const found: Found = await tables.find(shape.table.name, scope, {
    ...question,
    limit,
    total: isCounted,
    ...(after !== undefined ? { after } : offset > 0 ? { offset } : {}),
  })
  const { rows: stored, total, next } = found
  const rows = stored.map(({ row }) => row)
  return { rows: present === undefined ? rows : await present(rows), stored, total, next }
}

/**
 * No index covers the members that `keep` looks at (a status changes by time alone): all rows that match the rest are
 * walked in the requested order. The place is that of the last answered row, so that no row is skipped whose members
 * stay, with the total that the first page counted.
 */
const walk = async (
  shape: ListShape,
  request: Scoped,
  question: Omit<Find, 'limit'>,
  { limit, after: place, offset }: PageStart,
  keep: Keep,
): Promise<Page> => {
  const [, counted, from] = /^(\d+):(.*)$/s.exec(place ?? '') ?? []
  const rows: Row[] = []
  let matches = 0
  let last: { after: string | undefined; limit: number } = { after: undefined, limit: 0 }
  let after: string | undefined = from
  do {
    const page = await pageOf(shape, request, question, { limit: LIMIT_MAX, after, offset: 0 })
    for (const [i, row] of page.rows.entries()) {
      if (!keep(row, page.stored[i].row) || matches++ < offset || rows.length === limit) continue
      rows.push(row)
      last = { after, limit: i + 1 }
    }
    after = page.next ?? undefined
  } while (after !== undefined && (counted === undefined || matches <= limit))
  const total = counted === undefined ? matches : Number(counted)
  if (matches <= offset + rows.length) return { rows, stored: [], total, next: null }
  const { next } = await pageOf(shape, { ...request, present: undefined }, question, { ...last, offset: 0 })
  return { rows, stored: [], total, next: `${total}:${next}` }
}

/** Conditions of the query and of the caller's sight on rows. */
type Asking = Pick<ListRequest, 'caller' | 'query' | 'where' | 'every' | 'keep' | 'range' | 'ranges' | 'words'>

/** The rows of a list: the question to the table, and further conditions on them. Undefined for none. */
export const rowsAsked = (
  shape: ListShape,
  asking: Asking,
): { conditions: Conditions; keep: Keep | undefined } | undefined => {
  const conditions = conditionsOf(shape, asking)
  return conditions && { conditions, keep: keepOf(shape, asking) }
}

const conditionsOf = (shape: ListShape, asking: Asking): Conditions | undefined => {
  const { query, range, ranges, words } = asking
  const every = withAbsent(shape, asking)
  const where = whereOf(shape, asking)
  // A text of signs alone names no word, and no row has it.
  const isWordless = query.q !== undefined && wordsOf(query.q).length === 0
  if (where === undefined || isWordless) return undefined
  return {
    where,
    ...(every !== undefined && { every }),
    range,
    ...(ranges !== undefined && { ranges }),
    ...(words === undefined ? { text: query.q } : { words }),
  }
}

/** Undefined where no row can match. */
const questionOf = (shape: ListShape, request: ListRequest): Omit<Find, 'limit'> | undefined => {
  const { query, sort = shape.order } = request
  const conditions = conditionsOf(shape, request)
  if (conditions === undefined) return undefined
  const sortBy =
    query.sortBy ?? (query.sortOrder === 'desc' && shape.sortable.includes('createdAt') ? 'createdAt' : undefined)
  return {
    ...conditions,
    ...(sortBy !== undefined && { sort: { field: shape.sorts?.[sortBy] ?? sortBy, order: query.sortOrder ?? 'asc' } }),
    ...(sort !== undefined && { sort }),
  }
}

const whereOf = (shape: ListShape, { caller, query, where }: Asking): Find['where'] | undefined => {
  const conditions: NonNullable<Find['where']> = {}
  for (const name of Object.keys(shape.filters)) {
    if (query[name] === undefined || shape.computed?.includes(name)) continue
    const asked = askedFor(shape, caller, name, query[name] as Json)
    if (!asked.isAbsent) Object.assign(conditions, asked.where)
  }
  Object.assign(conditions, where)
  for (const [field, own] of limitsOf(caller, shape)) {
    const asked = conditions[field]
    const left = asked === undefined ? own : [asked].flat().filter((value) => own.includes(value as string))
    if (left.length === 0) return undefined
    conditions[field] = left
  }
  return conditions
}

/** Conditions on a row that the table cannot answer; undefined for none. */
const keepOf = (shape: ListShape, request: Asking): Keep | undefined => {
  const { query, caller } = request
  const asked = (shape.computed ?? []).filter((name) => query[name] !== undefined)
  const absences = absencesOf(shape, request).filter((one) => !isIndexed(shape, one))
  const isSearchWider = query.q !== undefined && personalFields(caller, shape.personal).length > 0
  if (asked.length === 0 && absences.length === 0 && request.keep === undefined && !isSearchWider) return undefined
  return (row, stored = row) =>
    asked.every((name) => [query[name]].flat().includes(row[name] ?? ABSENT_VALUE)) &&
    absences.every((one) => hasAny(stored, one)) &&
    request.keep?.(row) !== false &&
    (!isSearchWider || hasWords(shape, withoutPersonal(caller, shape.personal, row), query.q ?? ''))
}

/** The index of words has personal fields too: callers that may not see them find a row only by its visible fields. */
const hasWords = ({ table, members }: ListShape, row: Row, q: string): boolean => {
  const words = wordsOfRow(
    row,
    (table.text ?? []).filter((field) => members.includes(field)),
  )
  return wordsOf(q).every((asked) => words.some((word) => word.startsWith(asked)))
}

/** The question without the caller's view, which can change while a list is walked. */
const askedOf = ({
  limit: _limit,
  page: _page,
  cursor: _cursor,
  fields: _fields,
  ...asked
}: ListQuery): [string, unknown][] =>
  Object.entries(asked)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))

/** The field that a filter or a sort looks at. */
const namedBy = ([name, value]: [string, unknown]): string[] => (name === 'sortBy' ? [value as string] : [name])

const offsetOf = (page: number, limit: number): number => {
  const offset = (page - 1) * limit
  if (offset > OFFSET_MAX) throw invalid('/page', `must not skip more than ${OFFSET_MAX} rows; walk with cursor`)
  return offset
}
