import type { DetailsContext } from '../../../features/automations/action-type.ts'
import { EVENT_DATA_TYPES } from '../../../features/automations/events.ts'
import { type Dynamic, dynamicsIn, valueFaults } from '../../../features/automations/values.ts'
import type { StoredField } from '../../../features/data/fields.ts'
import { DATA_TYPES, type DataTypeRow, RECORDS, type RecordRow, valueIn } from '../../../features/data/views.ts'
import { type FlowRow, FLOWS, mappedField } from '../../../features/flows/views.ts'
import type { TaskRow } from '../../../features/tasks/views.ts'
import { Failure, type FieldError } from '../../../kernel/errors.ts'
import { type Json, valueAt } from '../../../kernel/json.ts'
import { rulesData } from '../event-data.ts'
import type { Work } from './action.ts'
import type { InsideServices } from './inside.ts'

/** Size of all dynamic values of one action together, as JSON: an event may be large, and be named often. */
const BYTES_MAX = 256 * 1024

type Tables = DetailsContext['tables']

/** The flow that the rules name, from whose data source values are taken. */
const flowOfRules = (fields: { [key: string]: unknown }): string | undefined => {
  const flowId = fields['task.flowId']
  return typeof flowId === 'string' ? flowId.toLowerCase() : undefined
}

/** Faults of the dynamic values in details, at a path. */
export const dynamicFaults = async (context: DetailsContext, value: Json, path: string): Promise<FieldError[]> => {
  const nested = valueFaults(value, path, () => undefined)
  if (nested.length > 0) return nested
  const choices = await fieldsToChoose(context, value)
  return valueFaults(value, path, (dynamic) =>
    dynamic.from === 'event'
      ? refFault(context, dynamic.path)
      : typeof choices === 'string'
        ? choices
        : choices.has(dynamic.field)
          ? undefined
          : `must be one of the fields that the data source of the flow maps, without the primary key: ${[...choices].join(', ')}`,
  )
}

const refFault = ({ pathFault, event }: DetailsContext, path: string): string | undefined => {
  if (path.split('.').includes('__proto__')) return 'must not name __proto__'
  return path === '' ? `must be a path in the data of ${event}` : pathFault(path)
}

/** Names of the fields that `fromDataSource` may take, or the reason why there are none. */
const fieldsToChoose = async (
  { tables, editor, event, fields }: DetailsContext,
  value: Json,
): Promise<ReadonlySet<string> | string> => {
  if (!namesDataSource(value)) return new Set()
  if (EVENT_DATA_TYPES[event] !== 'task') return 'needs a task event'
  const flowId = flowOfRules(fields)
  if (flowId === undefined) return 'needs the flow in rules.fields["task.flowId"]'
  const source = await sourceOf(tables, editor.organizationId, flowId)
  return source === undefined ? 'needs a flow with a data source' : new Set(source.keys())
}

const known = new WeakMap<object, boolean>()

/** Whether a value is read from the record of a task. Each run checks the same details. */
export const namesDataSource = (details: Json): boolean => {
  if (typeof details !== 'object' || details === null) return false
  const names = known.get(details) ?? dynamicsIn(details).some(({ from }) => from === 'dataSource')
  known.set(details, names)
  return names
}

interface SourceField {
  dataTypeId: string
  /** Key of its value in records. */
  key: string
}

/** The fields mapped by a flow's data source configuration, by name, without the primary key (the lookup key). */
const sourceOf = async (
  tables: Tables,
  organizationId: string,
  flowId: string,
): Promise<Map<string, SourceField> | undefined> => {
  const flow = await tables.get<FlowRow>(FLOWS, organizationId, flowId)
  const dataTypeId = flow?.dataSource?.dataTypeId
  const type = dataTypeId && (await tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId))
  if (!type) return undefined
  const mapped = Object.values(flow?.dataSource?.mapping ?? {}).flatMap((kept) => mappedField(type, kept) ?? [])
  const fields = mapped.filter(({ name }) => name !== type.primaryKey)
  const named = (name: string, { _id: key }: StoredField): [string, SourceField] => [
    name,
    { dataTypeId: type._id, key },
  ]
  return new Map([
    ...fields.flatMap((field) => (field.formerNames ?? []).map((former) => named(former, field))),
    ...fields.map((field) => named(field.name, field)),
  ])
}

/**
 * Dynamic values of one run: read from the event as the editor may see it, and from the whole record of its task, even
 * fields that a role hides. @throws Failure too_large
 */
export const valuesOf = async (
  { tables }: Pick<InsideServices, 'tables'>,
  work: Work,
  details: Json,
): Promise<(dynamic: Dynamic) => Json | undefined> => {
  const data = rulesData(work.run.trigger.event, work.data)
  const record = namesDataSource(details) ? await recordOf(tables, work) : undefined
  let bytes = 0
  return (dynamic) => {
    const value = dynamic.from === 'event' ? (valueAt(data, dynamic.path.split('.')) as Json) : record?.(dynamic.field)
    bytes += value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
    if (bytes > BYTES_MAX)
      throw new Failure('too_large', { message: `The values come to more than ${BYTES_MAX} bytes.` })
    return value ?? undefined
  }
}

const recordOf = async (
  tables: Tables,
  { automation, data }: Work,
): Promise<((field: string) => Json | undefined) | undefined> => {
  const { organizationId, rules } = automation
  const { dataSource } = data.task as TaskRow
  const flowId = flowOfRules(rules.fields)
  if (dataSource === undefined || flowId === undefined) return undefined
  const source = await sourceOf(tables, organizationId, flowId)
  const record = await tables.get<RecordRow>(RECORDS, organizationId, dataSource.dataId)
  return (name) => {
    const field = source?.get(name)
    if (field === undefined)
      throw new Failure('invalid', { message: `The flow does not map the field ${name} of its data source any more.` })
    return record === undefined || record.dataTypeId !== field.dataTypeId
      ? undefined
      : valueIn(record.values, field.key)
  }
}
