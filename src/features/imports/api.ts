import type { EventLog } from '../../engines/event-log.ts'
import type { FileStore } from '../../engines/file-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { type FormFile, receiveFile } from '../../kit/files/form-file.ts'
import { sendFile } from '../../kit/files/send-file.ts'
import { shownCell, type TableRow } from '../../kit/formats/table-cells.ts'
import type { OpenTable } from '../../kit/formats/open-table.ts'
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
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { askedBefore, askJob, endJob, type JobPlaces } from '../../kit/jobs/asking.ts'
import { hasEnded } from '../../kit/jobs/job.ts'
import type { ImportRequested } from './events.ts'
import { assertHub, assertMayWrite, formOf, habitsOf, type ImportForm } from './import-form.ts'
import { OpenFiles } from './open-files.ts'
import {
  DECLARED,
  FORM_FIELDS,
  FORM_SHOWN,
  IMPORT_EXAMPLE,
  IMPORT_ID,
  IMPORT_SCHEMA,
  PREVIEW,
  PREVIEW_EXAMPLE,
  STATES,
} from './schemas.ts'
import { checkedMapping, suggestedMapping, type Target, targetsOf } from './targets.ts'
import {
  IMPORT,
  IMPORT_FILES,
  IMPORT_UNDO,
  importShown,
  type ImportRow,
  IMPORTS,
  reportKey,
  seesImport,
} from './views.ts'

export interface ImportServices {
  log: EventLog
  tables: TableStore
  files: FileStore
  clock: Clock
  bytesMax: number
  places: JobPlaces
  undoPlaces: JobPlaces
}

/** Beside the file. */
const FORM_BYTES_MAX = 512 * 1024
const PREVIEW_ROWS = 20
const PREVIEW_CHARS = 1_000

/** Files that people send, made into records and tasks by jobs. */
export const importRoutes = (services: ImportServices): Route[] => {
  const open = new OpenFiles(services)
  return [
    previewRoute(services, open),
    askRoute(services, open),
    listRoute(services),
    readRoute(services),
    reportRoute(services),
    undoRoute(services),
    deleteRoute(services),
  ]
}

const uploading = ({ files, bytesMax }: ImportServices) => ({
  rawBody: { contentTypes: ['multipart/form-data'] },
  bodyShown: FORM_SHOWN,
  bodyBytesMax: bytesMax + FORM_BYTES_MAX,
  receive: (request: Parameters<NonNullable<Route['receive']>>[0]) => {
    const { organizationId } = userOf(request)
    return receiveFile(files, request, { prefix: `${IMPORT_FILES}${organizationId}/`, bytesMax, fields: FORM_FIELDS })
  },
})

const previewRoute = (services: ImportServices, open: OpenFiles): Route =>
  route<object, FormFile>({
    ...DECLARED,
    ...uploading(services),
    method: 'POST',
    path: '/data/import/preview',
    operationId: 'previewImport',
    summary: 'See how a file would be read; nothing is kept',
    description: 'Only `file` and `type` are needed.',
    bodyExample: { type: 'datasource' },
    idempotent: false,
    answers: {
      200: {
        description: 'The columns, the first rows, and the mapping that their names suggest.',
        schema: envelope({ data: PREVIEW }),
        example: { status: true, data: PREVIEW_EXAMPLE },
      },
    },
    handler: async (request) => {
      const { key } = request.body
      try {
        const form = formOf(request.body)
        const targets = await previewTargets(services, request, form)
        const asked = {
          signal: request.signal,
          expected: namesOf(targets),
          ...(form.sheet !== undefined && { sheet: form.sheet }),
        }
        const data = await open.with(key, asked, async (table) => ({
          columns: table.columns,
          rows: (await firstRows(table)).map(({ cells }) =>
            table.columns.map((_, i) => shownCell(cells[i]).slice(0, PREVIEW_CHARS)),
          ),
          mapping: suggestedMapping(table.columns, targets, form.type),
          encoding: table.about.encoding ?? null,
          delimiter: table.about.delimiter ?? null,
          sheets: table.about.sheets,
        }))
        return { body: { data } }
      } finally {
        await services.files.delete(key)
      }
    },
  })

/** Without a data type or a flow nothing is known of the fields that go with them. */
const previewTargets = async (
  { tables }: ImportServices,
  request: Pick<RouteRequest, 'caller'>,
  form: ImportForm,
): Promise<Target[]> => {
  const isKnown = form.type === 'datasource' ? form.dataTypeId !== undefined : form.flowId !== undefined
  return isKnown && form.type !== 'route' ? targetsOf(tables, userOf(request), form) : []
}

const namesOf = (targets: readonly Target[]): string[] =>
  targets.flatMap(({ name, label }) => [name.replace(/^components\./, ''), ...(label === undefined ? [] : [label])])

const firstRows = async (table: OpenTable): Promise<TableRow[]> => {
  for await (const page of table.pages()) return page.slice(0, PREVIEW_ROWS)
  return []
}

const askRoute = (services: ImportServices, open: OpenFiles): Route =>
  route<object, FormFile>({
    ...DECLARED,
    ...uploading(services),
    method: 'POST',
    path: '/data/import',
    operationId: 'importData',
    summary: 'Import a file of records, tasks, visits or routes',
    description:
      'The file is .csv, .xlsx or .xls; what it is, its bytes say. Records need `edit/data` too, all else `edit/task` and `dispatch/task`.',
    bodyExample: { type: 'datasource', dataTypeId: IMPORT_EXAMPLE.dataTypeId, mode: 'upsert' },
    answers: {
      202: {
        description: 'The import, a job: the live channel `job` tells how it goes.',
        schema: envelope({ data: IMPORT_SCHEMA }),
        headers: ['Location'],
        example: { status: true, data: { ...IMPORT_EXAMPLE, status: 'queued' } },
      },
    },
    handler: async (request) => {
      const { key } = request.body
      const id = request.ids.next()
      const before = request.ids.isRepeat === true ? await askedBefore(services.log, IMPORT, id) : undefined
      if (before !== undefined) {
        if (before.state.row?.upload !== key) await services.files.delete(key)
        return accepted(before.state.row as ImportRow, before.wrote)
      }
      try {
        const requested = await requestedOf(services, open, request)
        const { state, wrote } = await askJob(services, IMPORT, request, id, requested)
        return accepted(state.row as ImportRow, wrote)
      } catch (error) {
        if (error instanceof Failure && error.status < 500) await services.files.delete(key)
        throw error
      }
    },
  })

const accepted = (row: ImportRow, wrote: Reply['wrote']): Reply => ({
  status: 202,
  body: { data: importShown(row) },
  headers: { location: `/api/v3/import-monitoring/${row._id}` },
  wrote,
})

/** All that the job needs, with nothing left to guess. @throws Failure invalid, forbidden, of the file */
const requestedOf = async (
  { tables }: ImportServices,
  open: OpenFiles,
  request: RouteRequest<object, FormFile>,
): Promise<ImportRequested> => {
  const caller = userOf(request)
  const { key, name, size } = request.body
  const { mapping: sent, ...form } = formOf(request.body)
  assertMayWrite(caller, form.type)
  const targets = await targetsOf(tables, caller, form)
  await assertHub(tables, caller, form.hubId)
  const expected = [...namesOf(targets), ...Object.keys(sent ?? {})]
  const asked = { signal: request.signal, expected, ...(form.sheet !== undefined && { sheet: form.sheet }) }
  const { about, columns } = await open.with(key, asked, async (table) => table)
  const mapping =
    sent === undefined
      ? suggestedMapping(columns, targets, form.type)
      : checkedMapping(sent, columns, targets, form.type)
  if (Object.keys(mapping).length === 0)
    throw new Failure('invalid', {
      message: `No column of the file is called like a field; send a mapping. It has ${columns.slice(0, 20).join(', ')}.`,
      errors: [{ path: '/mapping', message: 'is required: no column is called like a field' }],
    })
  const { organizationId, userId } = caller
  return {
    organizationId,
    userId,
    at: request.now,
    fileName: name,
    size,
    upload: key,
    format: about.format,
    ...(about.delimiter !== undefined && { delimiter: about.delimiter }),
    ...(await habitsOf(tables, organizationId, about)),
    ...form,
    ...(about.sheet !== undefined && { sheet: about.sheet }),
    mapping,
  }
}

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
        where: caller.hubIds === 'all' ? {} : { userId: caller.userId },
        present: (rows) => rows.map((row) => importShown(row as ImportRow)),
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
      return { body: { data: choose(importShown(await findImport(services, request))) } }
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
      const { _id, organizationId, result, fileName, format } = await findImport(services, request)
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

const undoRoute = (services: ImportServices): Route =>
  route({
    ...DECLARED,
    ...ONE,
    path: `${ONE.path}/undo`,
    method: 'POST',
    operationId: 'undoImport',
    summary: 'Take an import back: what it made and nobody touched since goes',
    description: 'What was changed since, and what was there before an upsert, stays and is reported in `undo`.',
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
      assertMayWrite(caller, row.type)
      if (!hasEnded(row)) throw new Failure('conflict', { message: `The import is ${row.status}; cancel it first.` })
      const { organizationId, _id: importId, createdAt: importedAt, type, result } = row
      const lastRow = result?.lastRow ?? (row.reached?.cursor as { lastRow?: number } | undefined)?.lastRow ?? 0
      const requested = { organizationId, userId: caller.userId, at: request.now, importId, importedAt, type, lastRow }
      const asking = { log: services.log, places: services.undoPlaces }
      const { wrote } = await askJob(asking, IMPORT_UNDO, request, importId, requested)
      const { undoneAt: _at, undo: _undo, ...asked } = row
      return { status: 202, body: { data: importShown(asked as ImportRow) }, wrote }
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

/** An import that the caller may see. @throws Failure not_found */
const findImport = async (
  { tables }: ImportServices,
  request: Pick<RouteRequest, 'caller' | 'params'>,
): Promise<ImportRow> => {
  const caller = userOf(request)
  const id = request.params.importId.toLowerCase()
  const row = await tables.get<ImportRow>(IMPORTS.name, caller.organizationId, id)
  if (row === undefined || !seesImport(caller, row.userId)) throw new Failure('not_found')
  return row
}
