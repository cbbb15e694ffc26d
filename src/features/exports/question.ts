import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { bothFilters } from './both-filters.ts'
import { type ExportShape, exportShape } from './columns.ts'
import { withCurrentNames } from './current-names.ts'
import type { ExportFormat, ExportKind, ExportQuestion } from './events.ts'
import type { ExportWalk, ListWalker } from './walk.ts'

export interface ExportSources {
  tables: TableStore
  lists: { [kind in ExportKind]: ListWalker }
  taskMembers: readonly string[]
}

export interface ExportBody {
  dataTypeId?: string
  format?: ExportFormat
  exportConfigId?: string
  fields?: string[]
  mapping?: { [field: string]: string }
  filter?: JsonObject
}

interface ConfigRow extends Row {
  target: ExportKind
  dataTypeId?: string
  fields: string[]
  mapping: { [field: string]: string }
  filter: JsonObject
  format: ExportFormat
}

/** The request merged with its config. @throws Failure invalid */
export const questionOf = async (
  { tables, lists }: ExportSources,
  { organizationId }: UserCaller,
  kind: ExportKind,
  body: ExportBody,
): Promise<ExportQuestion> => {
  const exportConfigId = body.exportConfigId?.toLowerCase()
  const kept =
    exportConfigId === undefined
      ? undefined
      : await assertExists<ConfigRow>(tables, 'exportConfigs', organizationId, exportConfigId, '/exportConfigId')
  const config = kept && (await withCurrentNames(tables, organizationId, kept))
  if (config !== undefined && config.target !== kind)
    throw invalid('/exportConfigId', `names a config for ${config.target === 'data' ? 'data' : 'tasks'}`)
  const dataTypeId = body.dataTypeId?.toLowerCase() ?? config?.dataTypeId
  if (kind === 'data' && dataTypeId === undefined) throw invalid('/dataTypeId', 'is required')
  if (kind === 'data' && config !== undefined && config.dataTypeId !== dataTypeId)
    throw invalid('/exportConfigId', 'names a config for another data type')
  const fields = body.fields ?? (config === undefined || config.fields.length === 0 ? undefined : config.fields)
  return {
    kind,
    format: body.format ?? config?.format ?? 'csv',
    ...(dataTypeId !== undefined && { dataTypeId }),
    ...(exportConfigId !== undefined && { exportConfigId }),
    ...(fields !== undefined && { fields }),
    mapping: { ...config?.mapping, ...body.mapping },
    filter: bothFilters(config?.filter ?? {}, body.filter ?? {}, lists[kind].parameters),
  }
}

/** Exports need the permissions to read the same rows. @throws Failure forbidden */
export const assertMayExport = (caller: UserCaller, kind: ExportKind): void => {
  const lacking = lackingOf(caller, kind)
  if (lacking.length > 0)
    throw new Failure('forbidden', {
      message: `This needs the permission ${lacking.join(' and ')}.`,
      extra: { permissions: lacking },
    })
}

export const mayExport = (caller: UserCaller, kind: ExportKind): boolean => lackingOf(caller, kind).length === 0

const lackingOf = ({ permissions }: UserCaller, kind: ExportKind): string[] =>
  (kind === 'data' ? ['view/data'] : ['export/task', 'view/task']).filter((name) => !permissions.has(name))

/** The requested rows and their shape. @throws Failure invalid, forbidden with `fields` */
export const openExport = async (
  { tables, lists }: ExportSources,
  caller: UserCaller,
  question: ExportQuestion,
  now: number,
  signal: AbortSignal,
): Promise<{ shape: ExportShape; walk: ExportWalk }> => {
  const shape = await exportShape(tables, caller, question)
  const filter =
    question.kind === 'data' ? { ...question.filter, dataTypeId: question.dataTypeId as string } : question.filter
  return { shape, walk: await lists[question.kind].walk(caller, filter, shape.fields, now, signal) }
}
