import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { answerList, type ListRequest } from '../../kit/http/answer-list.ts'
import { plainNumber } from '../../kit/http/plain-number.ts'
import {
  ABSENT_VALUE,
  FIELDS_PARAMETER,
  FIELDS_QUERY,
  idSchema,
  LIMIT_MAX,
  type ListQuery,
  type ListShape,
  listQuerySchema,
  shownRow,
} from '../../kit/http/list-query.ts'
import { pageTexts } from '../../kit/http/page-texts.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { listAnswer, rowAnswer, rowReply } from '../../kit/resource/answers.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { nameKey } from './data-type.ts'
import { uniqueKey, uniqueTermOf, wordGroups } from './record-index.ts'
import { asksForValues, assertFieldsShown, recordQuestion } from './record-question.ts'
import { record } from './record.ts'
import {
  bareName,
  DATA_TYPES,
  type DataTypeRow,
  hiddenOf,
  RECORDS,
  type RecordRow,
  recordShower,
  shownRecord,
} from './views.ts'

type Services = Pick<ResourceServices, 'tables'>

const PATH = '/data'
const declared = listShape(record.declaration)

const shape: ListShape = {
  ...declared,
  inner: 'values',
  searchable: true,
  several: ['_id', 'dataTypeId'],
  filters: {
    _id: { type: 'string', format: 'uuid' },
    dataTypeId: { type: 'string', format: 'uuid' },
    invalid: {
      type: 'boolean',
      const: true,
      description: 'Only records that do not keep the rules of their data type.',
    },
  },
}

const fieldsParameter: JsonSchema = {
  ...FIELDS_PARAMETER,
  description: `${FIELDS_PARAMETER.description} Fields of the data type are named as \`phone\` or \`values.phone\`; one that your role hides is 403.`,
}

const query: JsonSchema = {
  ...listQuerySchema(shape),
  properties: {
    ...(listQuerySchema(shape).properties as object),
    sortBy: {
      type: 'string',
      maxLength: 200,
      description: '`createdAt`, `updatedAt`, or with `dataTypeId` `values.<name>`. Left out: the order of creation.',
    },
    fields: fieldsParameter,
  },
  patternProperties: {
    '^values\\.': {
      type: 'array',
      minItems: 1,
      maxItems: LIMIT_MAX,
      items: { type: 'string', minLength: 1, maxLength: 1_000 },
    },
  },
}

export const recordReads = (services: Services): Route[] => [
  listRoute(services),
  readRoute(services),
  readByTypeRoute(services),
]

const listRoute = (services: Services): Route =>
  route<ListQuery>({
    method: 'GET',
    path: PATH,
    operationId: 'listData',
    summary: 'List records',
    description:
      'With `dataTypeId`, `values.<name>` filters by a field (several values mean any of them: repeated, ids and options also separated by commas unless an option has one; `null` means those without a value; one that is no option is 400, and so is a coordinate or file, also with `null`: no index has them), `values.<name>.from` and `values.<name>.to` bound a number, a date or a time (inclusive). A field that your role hides is 403, and `q` never searches one.',
    tag: 'Data',
    access: { permission: 'view/data' },
    query,
    answers: { 200: listAnswer(record.declaration) },
    handler: async (request) => {
      const caller = userOf(request)
      const { tables } = services
      const typeIds = request.query.dataTypeId as readonly string[] | undefined
      const types = await typesOf(services, caller, typeIds)
      const only = typeIds?.length === 1 ? types.at(0) : undefined
      assertSortable(request.query)
      if (only === undefined && asksForValues(request.query))
        throw invalid('/dataTypeId', 'must name one type where fields are asked for')
      const question =
        only === undefined
          ? plainQuestion(request.query, typeIds)
          : await recordQuestion(tables, caller, only, request.query)
      const own = withFields(caller, types, request.query)
      return answerList(
        { ...shape, filters: { _id: shape.filters._id }, several: ['_id'] },
        {
          tables,
          caller,
          query: own,
          takesRows: request.takesRows,
          reads: shape.members,
          path: `/api/v3${PATH}`,
          ...question,
          ...searchOf(caller, types, own.q),
          ...shownIn(types, caller),
        },
      )
    },
  })

const readRoute = (services: Services): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: `${PATH}/{dataId}`,
    operationId: 'readData',
    summary: 'Read a record',
    tag: 'Data',
    access: { permission: 'view/data' },
    params: { dataId: idSchema('The id of the record.') },
    query: { ...FIELDS_QUERY, properties: { fields: fieldsParameter } },
    answers: { 200: rowAnswer(record.declaration) },
    handler: async (request) => {
      const caller = userOf(request)
      const row = await services.tables.get<RecordRow>(
        RECORDS,
        caller.organizationId,
        request.params.dataId.toLowerCase(),
      )
      if (row === undefined) throw new Failure('not_found')
      const [type] = await typesOf(services, caller, [row.dataTypeId])
      return rowReply(shown(caller, type, row, request.query), row)
    },
  })

const readByTypeRoute = (services: Services): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: `${PATH}/type/{name}/{dataId}`,
    operationId: 'readDataByType',
    summary: 'Read a record by the name of its data type',
    tag: 'Data',
    access: { permission: 'view/data' },
    params: {
      name: idSchema('The name of the data type, in any case.'),
      dataId: {
        ...idSchema('The id of the record, or the value of its primary key.'),
        maxLength: KEY_CHARS_MAX,
      },
    },
    query: { ...FIELDS_QUERY, properties: { fields: fieldsParameter } },
    answers: { 200: rowAnswer(record.declaration) },
    handler: async (request) => {
      const caller = userOf(request)
      const where = { nameKey: nameKey(request.params.name) }
      const found = await services.tables.find<DataTypeRow>(DATA_TYPES, caller.organizationId, { where, limit: 1 })
      const type = found.rows.at(0)?.row
      const row = type === undefined ? undefined : await recordOf(services, caller, type, request.params.dataId)
      if (type === undefined || row === undefined) throw new Failure('not_found')
      return rowReply(shown(caller, type, row, request.query), row)
    },
  })

/** Same length as in a filter by the key. */
const KEY_CHARS_MAX = 1_000
const ID_CHARS_MAX = 100

/** Finds a record by its id or its primary key; finds nothing by a key that the caller's role hides. */
const recordOf = async (
  { tables }: Services,
  caller: UserCaller,
  type: DataTypeRow,
  idOrKey: string,
): Promise<RecordRow | undefined> => {
  if (idOrKey.length <= ID_CHARS_MAX) {
    const row = await tables.get<RecordRow>(RECORDS, caller.organizationId, idOrKey.toLowerCase())
    if (row?.dataTypeId === type._id) return row
  }
  const field = type.fields.find(({ name }) => name === type.primaryKey)
  if (field === undefined || hiddenOf(caller, type).has(field.name)) return undefined
  const key = field.type === 'number' ? String(plainNumber(idOrKey)) : idOrKey
  const where = { terms: uniqueTermOf(type._id, field, uniqueKey(key)) }
  const found = await tables.find<RecordRow>(RECORDS, caller.organizationId, { where, limit: 1 })
  return found.rows.at(0)?.row
}

/** The requested type, or all types of the organization. @throws Failure invalid */
const typesOf = async (
  { tables }: Services,
  caller: UserCaller,
  dataTypeIds?: readonly string[],
): Promise<DataTypeRow[]> => {
  if (dataTypeIds !== undefined) {
    const ids = new Set(dataTypeIds.map((id) => id.toLowerCase()))
    ids.delete(ABSENT_VALUE)
    return Promise.all(
      [...ids].map((id) => assertExists<DataTypeRow>(tables, DATA_TYPES, caller.organizationId, id, '/dataTypeId')),
    )
  }
  const { rows } = await tables.find<DataTypeRow>(DATA_TYPES, caller.organizationId, { limit: 500 })
  return rows.map(({ row }) => row)
}

const assertSortable = ({ sortBy }: ListQuery): void => {
  if (sortBy !== undefined && !shape.sortable.includes(sortBy) && !sortBy.startsWith('values.'))
    throw invalid('/sortBy', `must be one of ${shape.sortable.join(', ')}, values.<name>`)
}

const plainQuestion = ({ invalid: isInvalid }: ListQuery, typeIds?: readonly string[]): Pick<ListRequest, 'where'> => ({
  where: {
    ...(isInvalid === true && { isInvalid }),
    ...(typeIds !== undefined && { dataTypeId: typeIds.map((id) => id.toLowerCase()) }),
  },
})

/** A search covers only shown fields: all words if no text is hidden, else each remaining field. */
const searchOf = (
  caller: UserCaller,
  types: readonly DataTypeRow[],
  q: string | undefined,
): Pick<ListRequest, 'words'> => {
  if (q === undefined) return {}
  const texts = types.flatMap((type) => {
    const hidden = hiddenOf(caller, type)
    const own = type.fields.filter((field) => field.type === 'text')
    return own.map((field) => ({ dataTypeId: type._id, field, isHidden: hidden.has(field.name) }))
  })
  if (!texts.some(({ isHidden }) => isHidden)) return {}
  const shown = texts.filter(({ isHidden }) => !isHidden)
  if (shown.length > SEARCHED_MAX) throw invalid('/dataTypeId', 'is required to search in so many fields')
  return { words: wordGroups(q, shown) }
}

/** Most fields searched for each word. */
const SEARCHED_MAX = 1_000

/** Most types whose shown fields are cached; lists over more types are built anew each time. */
const VIEWED_MAX = 20

const shownIn = (types: readonly DataTypeRow[], caller: UserCaller): Pick<ListRequest, 'present' | 'texts'> => {
  const byId = new Map(types.map((type) => [type._id, recordShower(caller, type)]))
  const showOther = recordShower(caller, undefined)
  const show = (row: Row): Row => (byId.get(row.dataTypeId as string) ?? showOther)(row)
  if (types.length > VIEWED_MAX) return { present: (rows) => rows.map(show) }
  const view = types.map((type) => [type._id, type.version, ...hiddenOf(caller, type)])
  return { texts: { kept: pageTexts, view: JSON.stringify(view), show } }
}

/** Adds fields under `values.` to `fields`. @throws Failure invalid for an unknown name, forbidden for a hidden one */
const withFields = (caller: UserCaller, types: readonly DataTypeRow[], query: ListQuery): ListQuery => {
  if (query.fields === undefined) return query
  const names = new Set(types.flatMap(({ fields }) => fields.map(({ name }) => name)))
  const asked: string[] = []
  const chosen = query.fields.split(',').map((part) => {
    const name = part.trim()
    if (shape.members.includes(name)) return name
    const bare = bareName(name)
    if (!names.has(bare)) throw invalid('/fields', `names an unknown field ${JSON.stringify(bare)}`)
    asked.push(bare)
    return `values.${bare}`
  })
  assertFieldsShown(caller, types, asked)
  return { ...query, fields: chosen.join() }
}

const shown = (caller: UserCaller, type: DataTypeRow, row: RecordRow, { fields }: ListQuery): Row => {
  const query = withFields(caller, [type], { fields })
  // Hidden fields are already removed.
  return shownRow(shape, query.fields, caller)(shownRecord(caller, type, row))
}
