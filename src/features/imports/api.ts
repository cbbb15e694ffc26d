import { Failure, invalid } from '../../kernel/errors.ts'
import { type FormFile, receiveFile } from '../../kit/files/form-file.ts'
import { shownCell, type TableRow } from '../../kit/formats/table-cells.ts'
import type { OpenTable } from '../../kit/formats/open-table.ts'
import { envelope } from '../../kit/http/page-members.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { askedBefore, askJob } from '../../kit/jobs/asking.ts'
import { withinQuotas } from '../../kit/quotas/quotas.ts'
import type { ImportRequested } from './events.ts'
import { assertHub, assertMayWrite, formOf, habitsOf, type ImportForm } from './import-form.ts'
import { monitoringRoutes } from './monitoring.ts'
import { OpenFiles } from './open-files.ts'
import {
  DECLARED,
  FORM_FIELDS,
  FORM_SHOWN,
  IMPORT_EXAMPLE,
  IMPORT_SCHEMA,
  PREVIEW,
  PREVIEW_EXAMPLE,
} from './schemas.ts'
import type { ImportServices } from './services.ts'
import { checkedMapping, fixedTargets, suggestedMapping, type Target, targetsOf } from './targets.ts'
import { IMPORT, IMPORT_FILES, importShown, type ImportRow } from './views.ts'

/** Most bytes of the form besides the file. */
const FORM_BYTES_MAX = 512 * 1024
const PREVIEW_ROWS = 20
const PREVIEW_CHARS = 1_000

/** Uploaded files that jobs turn into records and tasks. */
export const importRoutes = (services: ImportServices): Route[] => {
  const open = new OpenFiles(services)
  return [previewRoute(services, open), askRoute(services, open), ...monitoringRoutes(services)]
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
        const { organizationId } = userOf(request)
        const data = await open.with({ organizationId, key }, asked, async (table) => ({
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

/** Without a data type or a flow, the fields of those are unknown. */
const previewTargets = async (
  { tables }: ImportServices,
  request: Pick<RouteRequest, 'caller'>,
  form: ImportForm,
): Promise<Target[]> => {
  const needed = { datasource: form.dataTypeId, task: form.flowId, visit: form.flowId, route: form.type }
  return needed[form.type] !== undefined ? targetsOf(tables, userOf(request), form) : fixedTargets(form.type)
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
      'The file is .csv, .xlsx or .xls; what it is, its bytes say. Records need `edit/data` too, tasks and visits `edit/task` and `dispatch/task`, routes `edit/routing`.',
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
        return accepted(request, before.state.row as ImportRow, before.wrote)
      }
      try {
        const { organizationId } = userOf(request)
        // Recounts: reports of jobs, which take no places, may have been written since.
        await services.quotas?.left(organizationId, 'filesBytes')
        const { state, wrote } = await withinQuotas(services.quotas, organizationId, async (take) => {
          await take('filesBytes', request.body.size)
          return askJob(services, IMPORT, request, id, await requestedOf(services, open, request))
        })
        return accepted(request, state.row as ImportRow, wrote)
      } catch (error) {
        if (error instanceof Failure && error.status < 500) await services.files.delete(key)
        throw error
      }
    },
  })

const accepted = (request: Pick<RouteRequest, 'caller'>, row: ImportRow, wrote: Reply['wrote']): Reply => ({
  status: 202,
  body: { data: importShown(row, userOf(request)) },
  headers: { location: `/api/v3/import-monitoring/${row._id}` },
  wrote,
})

/** Complete input of the job, without defaults left open. @throws Failure invalid, forbidden, faults of the file */
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
  const { about, columns } = await open.with(
    { organizationId: caller.organizationId, key },
    asked,
    async (table) => table,
  )
  if (columns.length === 0) throw invalid('/file', 'must have a row with the names of its columns')
  const mapping =
    sent === undefined
      ? suggestedMapping(columns, targets, form.type)
      : checkedMapping(sent, columns, targets, form.type)
  if (Object.keys(mapping).length === 0)
    throw new Failure('invalid', {
      message: `No column of the file is called like a field; send a mapping. It has ${columns.slice(0, 20).join(', ')}.`,
      errors: [{ path: '/mapping', message: 'is required: no column is called like a field' }],
    })
  assertMayWrite(caller, form.type, mapping)
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
