import type { JsonSchema } from '../../kernel/json.ts'
import type { Answer } from './route.ts'

export const UUID: JsonSchema = { type: 'string', format: 'uuid' }
/** RFC 3339. */
export const DATE_TIME: JsonSchema = { type: 'string', format: 'date-time' }

/**
 * The schema of an object that is answered whole: every member is present but the `optional` ones. With `?fields=` only
 * the requested ones are. The title names it in the documentation.
 */
export const answered = (
  title: string | undefined,
  properties: { [name: string]: JsonSchema },
  optional: readonly string[] = [],
): JsonSchema => ({
  ...(title !== undefined && { title }),
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
})

/** Members beside the `data` of a page. */
export const PAGE_MEMBERS: { [name: string]: JsonSchema } = {
  page: { type: ['integer', 'null'], description: 'From 1; null where the page was asked for by `cursor`.' },
  limit: { type: 'integer', description: 'The limit in force.' },
  nextCursor: { type: ['string', 'null'], description: 'For `cursor`; null on the last page.' },
}

/** The same for a page of a stream, which is walked by cursor alone. */
export const STREAM_PAGE_MEMBERS: { [name: string]: JsonSchema } = {
  page: { type: 'null', description: 'These are walked by cursor.' },
  limit: { type: 'integer', description: 'The limit in force.' },
  nextCursor: { type: ['string', 'null'] },
}

export const envelope = (members: { [name: string]: JsonSchema }): JsonSchema => ({
  type: 'object',
  properties: { status: { const: true }, message: { type: 'string' }, ...members },
  required: ['status', ...Object.keys(members)],
})

/** An answer whose `data` is one thing, or a list without pages. */
export const dataAnswer = (description: string, schema: JsonSchema, example: unknown): Answer => ({
  description,
  schema: envelope({ data: schema }),
  example: { status: true, data: example },
})

/** A page of rows, named `title` in the documentation, with one row as its example. */
export const pageAnswer = (description: string, title: string, row: JsonSchema, example: unknown): Answer => ({
  description,
  schema: {
    title,
    ...envelope({
      data: { type: 'array', items: row },
      total: { type: 'integer', description: 'All that the filters find.' },
      ...PAGE_MEMBERS,
    }),
  },
  example: { status: true, data: [example], total: 1, page: 1, limit: 20, nextCursor: null },
})

/** The same for rows that are not counted. */
export const uncountedPageAnswer = (description: string, title: string, row: JsonSchema, example: unknown): Answer => ({
  description,
  schema: { title, ...envelope({ data: { type: 'array', items: row }, ...PAGE_MEMBERS }) },
  example: { status: true, data: [example], page: 1, limit: 20, nextCursor: null },
})
