import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { answered, dataAnswer, pageAnswer } from '../http/page-members.ts'
import type { Answer, Reply } from '../http/route.ts'
import { nameOf, rowSchema, writeOnlyOf } from './schemas.ts'
import type { ResourceDeclaration } from './declaration.ts'

export const pathsOf = ({ noun, plural, paths }: ResourceDeclaration): { one: string; many: string } =>
  paths ?? { one: `/${noun}`, many: `/${plural}` }

export const idParameter = ({ noun }: ResourceDeclaration): string => `${noun}Id`

export const capital = (name: string): string => name[0].toUpperCase() + name.slice(1)

export const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

export const article = (noun: string): string => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${words(noun)}`

const EXAMPLE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'

export const exampleRow = (declaration: ResourceDeclaration): JsonObject => ({
  ...Object.fromEntries(
    Object.entries({ ...defaultsOf(declaration), ...declaration.example }).filter(
      ([name]) => !writeOnlyOf(declaration).includes(name),
    ),
  ),
  _id: EXAMPLE_ID,
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  version: 1,
  createdAt: '2026-01-01T08:00:00.000Z',
  updatedAt: '2026-01-01T08:00:00.000Z',
})

/** The values of fields that the example leaves out. */
const defaultsOf = ({ fields, readOnly }: ResourceDeclaration): JsonObject =>
  Object.fromEntries(
    Object.entries({ ...fields, ...readOnly }).flatMap(([name, field]) =>
      field.default === undefined ? [] : [[name, field.default]],
    ),
  )

/** The reply of a read or write: the row in `data`, its version as ETag. */
export const rowReply = (data: Row, row: Row, wrote?: Reply['wrote'], status = 200): Reply => ({
  status,
  body: { data },
  headers: { etag: `"${row.version}"` },
  wrote,
})

export const rowAnswer = (declaration: ResourceDeclaration): Answer => ({
  ...dataAnswer(`The ${words(declaration.noun)}.`, rowSchema(declaration), exampleRow(declaration)),
  headers: ['ETag'],
})

/** The answer of a route that makes a value shown once; a repeated create answers without it. */
export const toldAnswer = (declaration: ResourceDeclaration, isCreated = false): Answer => {
  const once = declaration.secrets?.told
  if (once === undefined) return rowAnswer(declaration)
  const { member, example } = once
  const description = `Shown once: store it.${isCreated ? ' Absent where the `_id` that was sent exists already.' : ''}`
  const told = answered(undefined, { [member]: { type: 'string', description } }, isCreated ? [member] : [])
  return {
    ...dataAnswer(
      `The ${words(declaration.noun)}.`,
      { allOf: [rowSchema(declaration), told] },
      { ...exampleRow(declaration), [member]: example },
    ),
    headers: ['ETag'],
  }
}

export const listAnswer = (declaration: ResourceDeclaration): Answer =>
  pageAnswer(
    `A page of ${words(declaration.plural)}.`,
    `${nameOf(declaration)}Page`,
    rowSchema(declaration),
    exampleRow(declaration),
  )
