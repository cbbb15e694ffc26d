import type { TableStore } from '../../engines/table-store.ts'
import { type FieldError, invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { isDeepStrictEqual } from 'node:util'
import { assertExists, NAMES_NOTHING } from '../../kit/resource/references.ts'
import { FILES, filesFault, isEmpty, keptValue, valueFault } from '../../kit/values/value-type.ts'
import { type DataTypeRow, RECORDS, type RecordRow, valueIn } from '../data/views.ts'
import { type Component, componentsOf, type FlowContent, mappedField } from '../flows/views.ts'
import type { TaskValues } from './views.ts'

type Tables = Pick<TableStore, 'getMany'>

/** Values of components after a write, and the faults of the write. */
export interface Filled {
  values: JsonObject
  faults: FieldError[]
}

/**
 * Merges sent values into the present ones; null or an empty value removes one. `isService` may also write read-only
 * components.
 */
export const fillComponents = async (
  tables: Tables,
  organizationId: string,
  flow: FlowContent,
  before: JsonObject,
  sent: JsonObject,
  isService: boolean,
): Promise<Filled> => {
  const names = Object.entries(sent)
  if (names.length === 0) return { values: before, faults: [] }
  const components = new Map(componentsOf(flow).map((one) => [one.id, one]))
  const values = { ...before }
  const faults: FieldError[] = []
  const named: { component: Component; path: string; id: string }[] = []
  for (const [name, value] of names) {
    const path = `/components/${name}`
    const component = components.get(name)
    const old = valueIn(before, name)
    if (isDeepStrictEqual(old, value)) continue
    const fault =
      component === undefined
        ? 'is not a component of the flow'
        : component.readOnly === true && !isService
          ? 'is read only'
          : faultOf(component, value, old)
    if (fault !== undefined) faults.push({ path, message: fault })
    else if (isEmpty(value)) delete values[name]
    else {
      values[name] = keptValue(component as Component, value)
      if (component?.type === 'reference') named.push({ component, path, id: values[name] as string })
    }
  }
  const records = await tables.getMany<RecordRow>(
    RECORDS,
    organizationId,
    named.map(({ id }) => id),
  )
  for (const [i, { component, path }] of named.entries())
    if (records[i] === undefined || records[i].dataTypeId !== component.dataTypeId?.toLowerCase())
      faults.push({ path, message: NAMES_NOTHING })
  return { values, faults }
}

export const missingComponents = (flow: FlowContent, values: JsonObject): FieldError[] =>
  componentsOf(flow)
    .filter(({ id, required }) => required === true && isEmpty(valueIn(values, id)))
    .map(({ id }) => ({ path: `/components/${id}`, message: 'is required' }))

export const defaultComponents = (flow: FlowContent): JsonObject =>
  Object.fromEntries(componentsOf(flow).flatMap(({ id, default: value }) => (value === undefined ? [] : [[id, value]])))

/** Values that the flow's data source configuration takes from a record; values that do not fit stay empty. */
export const fromRecord = (flow: FlowContent, type: DataTypeRow, record: RecordRow): JsonObject => {
  const components = new Map(componentsOf(flow).map((one) => [one.id, one]))
  const values: JsonObject = {}
  for (const [id, kept] of Object.entries(flow.dataSource?.mapping ?? {})) {
    const component = components.get(id)
    const field = mappedField(type, kept)
    const value = field && valueIn(record.values, field._id)
    if (component === undefined || value === undefined || FILES.includes(component.type)) continue
    const own = component.type === 'text' || component.type === 'barcode' ? String(value) : value
    if (valueFault(component, own) === undefined) values[id] = own
  }
  return values
}

const faultOf = (component: Component, value: Json, old: Json | undefined): string | undefined => {
  if (isEmpty(value)) return undefined
  return valueFault(component, value) ?? filesFault(component, value, old)
}

/** Record named in a task's body to fill it. */
export const sourceOf = (source: Json | undefined): TaskValues['dataSource'] => {
  if (source === undefined || source === null) return undefined
  const { dataTypeId, dataId } = source as { dataTypeId: string; dataId: string }
  return { dataTypeId: dataTypeId.toLowerCase(), dataId: dataId.toLowerCase() }
}

/** @throws Failure invalid if the organization has no such record of that type */
export const sourceRecord = async (
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  { dataTypeId, dataId }: NonNullable<TaskValues['dataSource']>,
): Promise<RecordRow> => {
  const record = await assertExists<RecordRow>(tables, RECORDS, organizationId, dataId, '/dataSource/dataId')
  if (record.dataTypeId !== dataTypeId) throw invalid('/dataSource/dataTypeId', NAMES_NOTHING)
  return record
}
