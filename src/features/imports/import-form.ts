import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import type { DateOrder } from '../../kit/formats/conventions.ts'
import type { TableAbout } from '../../kit/formats/table-cells.ts'
import type { FormFile } from '../../kit/files/form-file.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { seesHubs } from '../../kernel/caller.ts'
import { ORGANIZATIONS_TABLE } from '../identity/views.ts'
import type { ImportMode, ImportRequested, ImportType } from './events.ts'
import { FORM } from './schemas.ts'

export interface ImportForm {
  type: ImportType
  dataTypeId?: string
  flowId?: string
  hubId?: string
  mapping?: { [column: string]: string }
  mode: ImportMode
  dryRun: boolean
  sheet?: string
  timeZone?: string
  dateOrder?: DateOrder
}

const check = compileCheck(FORM)
const EXTENSIONS = ['.csv', '.xlsx', '.xls']
/** Texts of boolean form fields. */
const BOOLEANS: { [text: string]: boolean } = { true: true, false: false }

/** @throws Failure invalid, unsupported_type for another file extension */
export const formOf = ({ fields, name }: Pick<FormFile, 'fields' | 'name'>): ImportForm => {
  if (!EXTENSIONS.some((one) => name.toLowerCase().endsWith(one)))
    throw new Failure('unsupported_type', {
      message: `/file must be one of ${EXTENSIONS.join(', ')}, not ${JSON.stringify(name)}.`,
    })
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
  const { mapping, dryRun } = given
  const form = {
    ...given,
    ...(mapping !== undefined && { mapping: parsed(mapping) }),
    ...(dryRun !== undefined && { dryRun: BOOLEANS[dryRun] ?? dryRun }),
  }
  assertValid(check, form)
  const said = form as unknown as ImportForm
  return {
    ...said,
    mode: said.mode ?? 'insert',
    dryRun: said.dryRun ?? false,
    ...(said.dataTypeId !== undefined && { dataTypeId: said.dataTypeId.toLowerCase() }),
    ...(said.flowId !== undefined && { flowId: said.flowId.toLowerCase() }),
    ...(said.hubId !== undefined && { hubId: said.hubId.toLowerCase() }),
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('/mapping', 'must be a JSON object')
  }
}

/** Permissions by type, besides `import/data`. */
const NEEDED: { [type in ImportType]: readonly string[] } = {
  datasource: ['edit/data'],
  task: ['edit/task', 'dispatch/task'],
  visit: ['edit/task', 'dispatch/task'],
  route: ['edit/routing'],
}

/** @throws Failure forbidden if the caller may not write the file's content */
export const assertMayWrite = (caller: UserCaller, type: ImportType, mapping: ImportForm['mapping'] = {}): void => {
  const hasRoutes = type === 'visit' && Object.values(mapping).includes('route')
  const needed = hasRoutes ? [...NEEDED[type], 'edit/routing'] : NEEDED[type]
  const lacking = needed.filter((permission) => !caller.permissions.has(permission))
  if (lacking.length > 0)
    throw new Failure('forbidden', {
      message: `This needs the permission ${lacking.join(' and ')}.`,
      extra: { permissions: lacking },
    })
}

/** @throws Failure invalid */
export const assertHub = async (
  tables: Pick<TableStore, 'get'>,
  caller: UserCaller,
  hubId: string | undefined,
): Promise<void> => {
  if (hubId === undefined) return
  await assertExists(tables, 'hubs', caller.organizationId, hubId, '/hubId')
  if (!seesHubs(caller, [hubId])) throw invalid('/hubId', 'names nothing in this organization')
}

interface Settings {
  language?: string
  timeZone?: string
}

/** Defaults of the organization for values that a file leaves ambiguous. */
export const habitsOf = async (
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  { delimiter }: Pick<TableAbout, 'delimiter'>,
): Promise<Pick<ImportRequested, 'timeZone' | 'defaults'>> => {
  const row = await tables.get<Row & { settings?: Settings }>(ORGANIZATIONS_TABLE, organizationId, organizationId)
  const { language = 'en', timeZone = 'UTC' } = row?.settings ?? {}
  const isAmerican = /^en-(US|PH|CA)$/i.test(language)
  const isEnglish = /^(en|zh|ja|ko|th|he)\b/i.test(language)
  const decimal = delimiter === ';' || !isEnglish ? ',' : '.'
  return { timeZone, defaults: { decimal, dateOrder: isAmerican ? 'mdy' : 'dmy' } }
}
