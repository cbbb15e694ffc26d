import { Failure } from '../../kernel/errors.ts'
import { sendFile } from '../../kit/files/send-file.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import {
  chooseFields,
  FIELDS_QUERY,
  type ListQuery,
  type ListShape,
  listQuerySchema,
} from '../../kit/http/list-query.ts'
import { envelope, pageAnswer } from '../../kit/http/page-members.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { askJob, endJob } from '../../kit/jobs/asking.ts'
import { hasEnded } from '../../kit/jobs/job.ts'
import { findJob, JOB_AUDIENCE } from '../../kit/jobs/who-sees.ts'
import { DATA_TYPES, type DataTypeRow, hiddenOf } from '../data/views.ts'
import { assertMayWrite } from './import-form.ts'
import { DECLARED, IMPORT_EXAMPLE, IMPORT_ID, IMPORT_SCHEMA, STATES } from './schemas.ts'
import type { ImportServices } from './services.ts'
import { IMPORT, IMPORT_UNDO, importShown, type ImportRow, IMPORTS, reportKey, seesQuotes } from './views.ts'

/** Progress of imports, their reports, undo and deletion. */
export const monitoringRoutes = (services: ImportServices): Route[] => [
  listRoute(services),
  readRoute(services),
  reportRoute(services),
  undoRoute(services),
  deleteRoute(services),
]

const MEMBERS = Object.keys(IMPORT_SCHEMA.properties as object)

const LIST: ListShape = {
  table: IMPORTS,
  members: MEMBERS,
  filters: {
    _id: { type: 'string', format: 'uuid' },
    status: { type: 'string', enum: [...STATES] },
    type: { type: 'string', enum: ['datasource', 'task', 'visit', 'route'] },
    mode: { type: 'string', enum: ['insert', 'upsert'] },
    userId: { type: 'string', format: 'uuid' },
  },
  several: ['_id', 'status', 'type', 'userId'],
  conditions: { status: (value) => ({ state: value as string[] }) },
  audience: JOB_AUDIENCE,
  sortable: IMPORTS.range ?? [],
  searchable: false,
}

const listRoute = ({ tables }: ImportServices): Route =>
  route<ListQuery>({
    ...DECLARED,
    method: 'GET',
    path: '/import-monitoring',
    operationId: 'listImports',
    summary: 'List imports',
    description: 'Those of the caller; for users who see every hub all of them. Kept 30 days.',
    query: listQuerySchema(LIST),
    answers: { 200: pageAnswer('A page of imports.', 'ImportPage', IMPORT_SCHEMA, IMPORT_EXAMPLE) },
    handler: async (request) => {
      const caller = userOf(request)
      return answerList(LIST, {
        tables,
        scope: caller.organizationId,
        caller,
        query: request.query,
        path: '/api/v3/import-monitoring',
        present: (rows) => rows.map((row) => importShown(row as ImportRow, caller)),
      })
    },
  })

const ONE = { path: '/import-monitoring/{importId}', params: { importId: IMPORT_ID } } as const

const readRoute = (services: ImportServices): Route =>
  route<{ fields?: string }>({
    ...DECLARED,
    ...ONE,
    method: 'GET',
    operationId: 'readImport',
    summary: 'Read how an import goes',
    query: FIELDS_QUERY,
    answers: {
      200: {
        description: 'The import.',
        schema: envelope({ data: IMPORT_SCHEMA }),
        example: { status: true, data: IMPORT_EXAMPLE },
      },
    },
    handler: async (request) => {
      const choose = chooseFields(MEMBERS, request.query.fields)
      return { body: { data: choose(importShown(await findImport(services, request), userOf(request))) } }
    },
  })

const EXTENSION = { csv: 'csv', xlsx: 'xlsx', xls: 'xls' } as const
const MEDIA_TYPES = {
  csv: 'text/csv; charset=utf-8',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xls: 'application/vnd.ms-excel',
} as const

const reportRoute = (services: ImportServices): Route =>
  route({
    ...DECLARED,
    ...ONE,
    path: `${ONE.path}/report`,
    method: 'GET',
    operationId: 'readImportReport',
    summary: 'Download the rows that an import refused, each with the reason',
    answers: {
      200: {
        description: 'A file in the format that was sent, with the reason in the last column.',
        contentType: MEDIA_TYPES.csv,
        alsoAs: { [MEDIA_TYPES.xlsx]: undefined, [MEDIA_TYPES.xls]: undefined },
        headers: ['Content-Disposition', 'Accept-Ranges', 'ETag'],
      },
      206: { description: 'The part that `Range` asks for.', contentType: MEDIA_TYPES.csv, headers: ['Content-Range'] },
    },
    handler: async (request) => {
      const row = await findImport(services, request)
      const { _id, organizationId, result, fileName, format } = row
      if (!seesQuotes(userOf(request), row)) await assertNoneHidden(services, request, row)
      if (result?.hasReport !== true)
        throw new Failure('not_found', { message: 'The import has no report: it runs, or refused no row.' })
      const name = `${fileName.replace(/\.[^.]*$/, '')}-errors.${EXTENSION[format]}`
      return sendFile(services.files, request, {
        _id,
        key: reportKey(organizationId, _id),
        name,
        contentType: MEDIA_TYPES[format],
      })
    },
  })

/** The report has rows as they were sent. @throws Failure forbidden with `fields` */
const assertNoneHidden = async (
  { tables }: ImportServices,
  request: Pick<RouteRequest, 'caller'>,
  { organizationId, dataTypeId }: ImportRow,
): Promise<void> => {
  const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId as string)
  const fields = type === undefined ? [] : [...hiddenOf(userOf(request), type)]
  if (type !== undefined && fields.length === 0) return
  throw new Failure('forbidden', { message: 'The report has fields that your role hides.', extra: { fields } })
}

const undoRoute = (services: ImportServices): Route =>
  route({
    ...DECLARED,
    ...ONE,
    path: `${ONE.path}/undo`,
    method: 'POST',
    operationId: 'undoImport',
    summary: 'Take an import back: what it made and nobody touched since goes',
    description:
      'What it made goes, and what it changed is as it was before; what somebody has changed since stays and is reported in `undo`.',
    answers: {
      202: {
        description: 'A job; `undoneAt` of the import says that it has ended.',
        schema: envelope({ data: IMPORT_SCHEMA }),
        example: { status: true, data: IMPORT_EXAMPLE },
      },
    },
    handler: async (request) => {
      const caller = userOf(request)
      const row = await findImport(services, request)
      assertMayWrite(caller, row.type, row.mapping)
      if (!hasEnded(row)) throw new Failure('conflict', { message: `The import is ${row.status}; cancel it first.` })
      const { organizationId, _id: importId, createdAt: importedAt, type, result } = row
      const lastRow = result?.lastRow ?? (row.reached?.cursor as { lastRow?: number } | undefined)?.lastRow ?? 0
      const requested = { organizationId, userId: caller.userId, at: request.now, importId, importedAt, type, lastRow }
      const asking = { log: services.log, places: services.undoPlaces }
      const { wrote } = await askJob(asking, IMPORT_UNDO, request, importId, requested)
      const { undoneAt: _at, undo: _undo, ...asked } = row
      return { status: 202, body: { data: importShown(asked as ImportRow, caller) }, wrote }
    },
  })

const deleteRoute = (services: ImportServices): Route =>
  route({
    ...DECLARED,
    ...ONE,
    method: 'DELETE',
    operationId: 'deleteImport',
    summary: 'Cancel an import that waits or runs, or delete the record of one that has ended',
    description: 'What a cancelled import has made stays until it is undone.',
    answers: { 200: { description: 'It has ended, or its record is gone with its files.' } },
    handler: async (request) => {
      const row = await findImport(services, request)
      const { wrote } = await endJob(services.log, IMPORT, request, row, hasEnded(row) ? 'delete' : 'cancel')
      return { wrote }
    },
  })

/** @throws Failure not_found */
const findImport = ({ tables }: ImportServices, request: Pick<RouteRequest, 'caller' | 'params'>): Promise<ImportRow> =>
  findJob<ImportRow>(tables, IMPORTS, request, request.params.importId)
