import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import { resolvedObject } from '../../../features/automations/values.ts'
import { RECORD_STREAMS } from '../../../features/data/events.ts'
import type { StoredField } from '../../../features/data/fields.ts'
import { RecordWriter } from '../../../features/data/record-writer.ts'
import { DATA_TYPES, type DataTypeRow, fieldNamed } from '../../../features/data/views.ts'
import { assertNoFaults, Failure, type FieldError, invalid } from '../../../kernel/errors.ts'
import { type Json, type JsonObject, pointerTo } from '../../../kernel/json.ts'
import { idFrom } from '../../../kit/commands/ids.ts'
import { assertExists } from '../../../kit/resource/references.ts'
import { isEmpty, valueFault } from '../../../kit/values/value-type.ts'
import type { Action, Work } from './action.ts'
import { dynamicFaults, namesDataSource, valuesOf } from './event-values.ts'
import {
  DETAILS_PATH,
  hasWritten,
  idOf,
  type InsideServices,
  membersOf,
  objectOf,
  originOf,
  outcomeOf,
} from './inside.ts'
import { staticFaults } from './task-content.ts'

const VALUES_PATH = `${DETAILS_PATH}/values`
/** Others may make or delete the record meanwhile. */
const TRIES = 5

/** Makes a record, or changes the one that has its primary key. */
export const writeRecordAction = (services: InsideServices): Action => {
  const writer = new RecordWriter(services)
  return {
    isSigned: false,
    isOutside: () => false,
    readsLists: (details, { subject }) => subject.type === 'record' || namesDataSource(details),
    needs: ['edit/data'],
    check: (details, context) => check(details, context),
    show: (details) => details,
    names: ({ dataTypeId }) => ({ dataTypes: dataTypeId }),
    preview: async (work) => {
      const { type, values, key } = await recordOf(services, work)
      const dataId = await writer.keys.idOf(work.automation.organizationId, type, key)
      return {
        isDone: false,
        action: 'createOrUpdateDataSource',
        isNew: dataId === undefined,
        ...(dataId !== undefined && { dataId }),
        dataTypeId: type._id,
        values,
      }
    },
    attempt: (work) => outcomeOf(() => write(services, writer, work)),
  }
}

const write = async (services: InsideServices, writer: RecordWriter, work: Work): Promise<JsonObject> => {
  const madeId = idFrom('automation-record', work.run.runId)
  if (await hasWritten(services, RECORD_STREAMS + madeId, work)) return { dataId: madeId }
  const { type, values, key } = await recordOf(services, work)
  const origin = originOf(services, work)
  for (let tries = 1; ; tries++) {
    const dataId = await writer.keys.idOf(origin.organizationId, type, key)
    if (dataId !== undefined && (await hasWritten(services, RECORD_STREAMS + dataId, work))) return { dataId }
    try {
      if (dataId === undefined)
        await writer.create(origin, { _id: madeId, dataTypeId: type._id, values }, type.primaryKey)
      else await writer.change(origin, { id: dataId, kind: 'amend', body: { values } })
      return { dataId: dataId ?? madeId }
    } catch (error) {
      if (tries === TRIES || !isOvertaken(error, type, dataId)) throw error
    }
  }
}

/** Another writer has made the record, or deleted it, since the lookup. */
const isOvertaken = (error: unknown, { primaryKey }: DataTypeRow, dataId: string | undefined): boolean => {
  if (!(error instanceof Failure)) return false
  if (dataId !== undefined) return error.code === 'not_found'
  return error.code === 'key_in_use' && error.details.errors?.[0]?.path === `/values/${primaryKey}`
}

/** @throws Failure invalid when the type is gone, or the event has no primary key for it */
const recordOf = async (
  services: InsideServices,
  work: Work,
): Promise<{ type: DataTypeRow; values: JsonObject; key: Json }> => {
  const { dataTypeId, values: said } = work.details as { dataTypeId: string; values: JsonObject }
  const { tables } = services
  const { organizationId } = work.automation
  const type = await assertExists<DataTypeRow>(tables, DATA_TYPES, organizationId, dataTypeId, '/dataTypeId')
  const named = renamed(type, resolvedObject(said, await valuesOf(services, work, work.details)))
  const path = `/values/${type.primaryKey}`
  const key = Object.hasOwn(named, type.primaryKey) ? named[type.primaryKey] : undefined
  if (key === undefined || isEmpty(key)) throw invalid(path, 'is required: records are found by it')
  const field = type.fields.find(({ name }) => name === type.primaryKey) as StoredField
  const kept = field.type === 'text' && typeof key === 'number' ? String(key) : key
  const fault = valueFault(field, kept)
  if (fault !== undefined) throw invalid(path, fault)
  return { type, values: { ...named, [type.primaryKey]: kept }, key: kept }
}

/** Values by the present names of their fields: the automation may have former ones. */
const renamed = ({ fields }: DataTypeRow, values: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [fieldNamed(fields, name)?.name ?? name, value]))

const check = async (sent: JsonObject | undefined, context: DetailsContext): Promise<Details> => {
  const details = membersOf(sent, ['dataTypeId', 'values'], ['dataTypeId', 'values'])
  const values = objectOf(details.values, VALUES_PATH)
  assertNoFaults(await dynamicFaults(context, values, VALUES_PATH))
  const path = `${DETAILS_PATH}/dataTypeId`
  const dataTypeId = idOf(details.dataTypeId, path)
  const { tables, editor } = context
  const type = await assertExists<DataTypeRow>(tables, DATA_TYPES, editor.organizationId, dataTypeId, path)
  const { primaryKey } = type
  const faults: FieldError[] = []
  const named = renamed(type, values)
  const key = Object.hasOwn(named, primaryKey) ? named[primaryKey] : undefined
  if (key === undefined || isEmpty(key))
    faults.push({ path: `${VALUES_PATH}${pointerTo(primaryKey)}`, message: 'is required: records are found by it' })
  for (const [name, value] of Object.entries(values)) {
    const at = VALUES_PATH + pointerTo(name)
    const field = fieldNamed(type.fields, name)
    if (field === undefined) faults.push({ path: at, message: `is not a field of ${type.name}` })
    else faults.push(...(await staticFaults(context, field, value, at)))
  }
  assertNoFaults(faults)
  return { dataTypeId, values }
}
