import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import {
  chooseFields,
  FIELDS_QUERY,
  type ListQuery,
  type ListShape,
  listQuerySchema,
} from '../../kit/http/list-query.ts'
import { dataAnswer, pageAnswer } from '../../kit/http/page-members.ts'
import { metadataOf, userOf } from '../../kit/http/request-context.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { askedBefore, askJob, endJob, type JobPlaces } from '../../kit/jobs/asking.ts'
import { hasEnded } from '../../kit/jobs/job.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import { findJob, JOB_AUDIENCE } from '../../kit/jobs/who-sees.ts'
import { assertRoom, type Quotas } from '../../kit/quotas/quotas.ts'
import { EXPORT_FORMATS, type ExportKind, type ExportRequested } from './events.ts'
import { assertMapping } from './asked-names.ts'
import { assertMayExport, type ExportBody, type ExportSources, openExport, questionOf } from './question.ts'
import { timeZoneOf } from '../identity/views.ts'
import {
  DATA_BODY,
  DECLARED,
  EXPORT_EXAMPLE,
  EXPORT_ID,
  EXPORT_SCHEMA,
  OTHER_TYPES,
  STATES,
  TASK_BODY,
} from './schemas.ts'
import { fileRoute, type FileRouteServices } from './file-route.ts'
import { EXPORT, exportShown, type ExportRow, EXPORTS } from './views.ts'
import { MEDIA_TYPES, writtenRows } from './write-rows.ts'

export interface ExportServices extends ExportSources, FileRouteServices {
  tables: TableStore
  log: EventLog
  clock: Clock
  places: JobPlaces
  quotas?: Quotas
  /** Larger exports, in rows, are jobs. */
  directMax: number
}

export const exportRoutes = (services: ExportServices): Route[] => [
  askRoute(services, 'data'),
  askRoute(services, 'task'),
  listRoute(services),
  readRoute(services),
  deleteRoute(services),
  fileRoute(services),
]

const asking = (kind: ExportKind) =>
  kind === 'data'
    ? ({
        path: '/data/export',
        operationId: 'exportData',
        summary: 'Export the records of a data type',
        access: { permission: 'view/data' },
        body: DATA_BODY,
        bodyExample: { dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d', format: 'csv' },
      } as const)
    : ({
        path: '/tasks/export',
        operationId: 'exportTasks',
        summary: 'Export tasks',
        description: 'Needs `view/task` too.',
        access: { permission: 'export/task' },
        body: TASK_BODY,
        bodyExample: { format: 'xlsx', filter: { state: ['new', 'assigned'] } },
      } as const)

const askRoute = (services: ExportServices, kind: ExportKind): Route =>
  route<object, ExportBody>({
    ...DECLARED,
    ...asking(kind),
    method: 'POST',
    answers: {
      200: {
        description: `The file, of at most ${services.directMax} rows.`,
        contentType: MEDIA_TYPES.csv,
        alsoAs: OTHER_TYPES,
        headers: ['Content-Disposition'],
      },
      202: {
        ...dataAnswer(
          'More rows: a job. The live channel `job` tells how it goes; its record gets a `downloadPath`.',
          EXPORT_SCHEMA,
          { ...EXPORT_EXAMPLE, status: 'queued' },
        ),
        headers: ['Location'],
      },
    },
    handler: async (request) => {
      const { tables, log } = services
      const caller = userOf(request)
      assertMayExport(caller, kind)
      const id = request.ids.next()
      const before = request.ids.isRepeat === true ? await askedBefore(log, EXPORT, id) : undefined
      const question = await questionOf(services, caller, kind, request.body)
      // The config's own mapping may name hidden or removed fields.
      await assertMapping(services, caller, { ...question, mapping: request.body.mapping ?? {} })
      const { shape, walk } = await openExport(services, caller, question, request.now, request.signal)
      const { organizationId, userId } = caller
      const { total } = walk
      // A repeat is answered in the form of the first answer, however many rows there are now.
      const isDirect = (before?.state.row as ExportRow | undefined)?.isDirect ?? total <= services.directMax
      const timeZone = await timeZoneOf(tables, organizationId)
      const requested = { organizationId, userId, at: request.now, ...question, timeZone, total, isDirect }
      if (!isDirect) {
        const ask = async () => {
          await assertRoom(services.quotas, organizationId, 'filesBytes', 1)
          return askJob(services, EXPORT, request, id, requested)
        }
        const { state, wrote } = before ?? (await ask())
        return accepted(state.row as ExportRow, wrote)
      }
      const wrote = await logDirect(services, request, id, requested)
      const stream = writtenRows({ format: question.format, timeZone, shape }, walk.pages())
      return { headers: headersOf(kind, question.format), stream, wrote }
    },
  })

const accepted = (row: ExportRow, wrote: Reply['wrote']): Reply => ({
  status: 202,
  body: { data: exportShown(row) },
  headers: { location: `/api/v3/tasks/export-log/${row._id}` },
  wrote,
})

/** Logs a file that is answered directly, without waiting for a place. */
const logDirect = async (
  { log }: ExportServices,
  request: RouteRequest<object, ExportBody>,
  id: string,
  requested: ExportRequested,
): Promise<Reply['wrote']> => {
  const context = { ids: request.ids, metadata: metadataOf(request) }
  const command = { kind: 'request', requested } as const
  return (await handleCommand(log, EXPORT.stream(id), jobDecider(EXPORT, id), command, context)).wrote
}

const headersOf = (kind: ExportKind, format: ExportRequested['format']): { [name: string]: string } => ({
  'content-type': MEDIA_TYPES[format],
  'content-disposition': `attachment; filename="${kind === 'data' ? 'data' : 'tasks'}.${format}"`,
})

const MEMBERS = Object.keys(EXPORT_SCHEMA.properties as object)

const LIST: ListShape = {
  table: EXPORTS,
  members: MEMBERS,
  filters: {
    _id: { type: 'string', format: 'uuid' },
    kind: { type: 'string', enum: ['data', 'task'] },
    format: { type: 'string', enum: [...EXPORT_FORMATS] },
    status: { type: 'string', enum: [...STATES] },
    dataTypeId: { type: 'string', format: 'uuid' },
    createdBy: { type: 'string', format: 'uuid' },
  },
  several: ['_id', 'kind', 'format', 'status', 'dataTypeId', 'createdBy'],
  conditions: { createdBy: (value) => ({ userId: value as string[] }) },
  audience: JOB_AUDIENCE,
  sortable: EXPORTS.range ?? [],
}

const listRoute = ({ tables, keyring }: ExportServices): Route =>
  route<ListQuery>({
    ...DECLARED,
    method: 'GET',
    path: '/tasks/export-log',
    operationId: 'listExports',
    summary: 'List exports',
    description:
      'Of data and tasks, direct ones too: those of the caller, for users who see every hub all of them. Kept 30 days.',
    access: { permission: 'export/task' },
    query: listQuerySchema(LIST),
    answers: { 200: pageAnswer('A page of exports.', 'ExportPage', EXPORT_SCHEMA, EXPORT_EXAMPLE) },
    handler: async (request) => {
      const caller = userOf(request)
      return answerList(LIST, {
        tables,
        caller,
        query: request.query,
        path: '/api/v3/tasks/export-log',
        present: (rows) => rows.map((row) => exportShown(row as ExportRow, { keyring, userId: caller.userId })),
      })
    },
  })

const ONE = { path: '/tasks/export-log/{exportId}', params: { exportId: EXPORT_ID } } as const

const readRoute = (services: ExportServices): Route =>
  route<{ fields?: string }>({
    ...DECLARED,
    ...ONE,
    method: 'GET',
    operationId: 'readExport',
    summary: 'Read how an export goes, with the path to its file',
    description: 'For the user who asked for it, and with `export/task` for users who see every hub.',
    access: 'user',
    query: FIELDS_QUERY,
    answers: { 200: dataAnswer('The export.', EXPORT_SCHEMA, EXPORT_EXAMPLE) },
    handler: async (request) => {
      const { keyring } = services
      const { userId } = userOf(request)
      const choose = chooseFields(MEMBERS, request.query.fields)
      return { body: { data: choose(exportShown(await findExport(services, request), { keyring, userId })) } }
    },
  })

const deleteRoute = (services: ExportServices): Route =>
  route({
    ...DECLARED,
    ...ONE,
    method: 'DELETE',
    operationId: 'deleteExport',
    summary: 'Cancel an export that waits or runs, or delete the record and the file of one that has ended',
    access: 'user',
    answers: { 200: { description: 'It has ended, or is gone with its file.' } },
    handler: async (request) => {
      const row = await findExport(services, request)
      const { wrote } = await endJob(services.log, EXPORT, request, row, hasEnded(row) ? 'delete' : 'cancel')
      return { wrote }
    },
  })

/** @throws Failure not_found */
const findExport = async (
  { tables }: ExportServices,
  request: Pick<RouteRequest, 'caller' | 'params'>,
): Promise<ExportRow> => {
  const { userId, permissions } = userOf(request)
  const row = await findJob<ExportRow>(tables, EXPORTS, request, request.params.exportId)
  if (row.userId !== userId && !permissions.has('export/task')) throw new Failure('not_found')
  return row
}
