import type { JsonSchema } from '../../kernel/json.ts'

/** What stands beside the `data` of a page. */
export const PAGE_MEMBERS: { [name: string]: JsonSchema } = {
  page: { type: ['integer', 'null'] },
  limit: { type: 'integer' },
  nextCursor: { type: ['string', 'null'] },
}

/** The same of a page of a stream, which is walked by cursor alone. */
export const STREAM_PAGE_MEMBERS: { [name: string]: JsonSchema } = {
  page: { type: 'null', description: 'These are walked by cursor.' },
  limit: { type: 'integer', description: 'The limit in force.' },
  nextCursor: { type: ['string', 'null'] },
}

/** The schema of a successful answer with these members. */
export const envelope = (members: { [name: string]: JsonSchema }): JsonSchema => ({
  type: 'object',
  properties: { status: { const: true }, message: { type: 'string' }, ...members },
  required: ['status', ...Object.keys(members)],
})
