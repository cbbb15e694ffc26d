import { Failure, invalid } from '../../kernel/errors.ts'
import { isObject, type JsonObject } from '../../kernel/json.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { isEmpty } from '../../kit/values/value-type.ts'
import { assertFieldsShown } from './record-question.ts'
import type { IndexedKeys } from './record-keys.ts'
import type { RecordWriter } from './record-writer.ts'
import { type DataTypeRow, RECORDS, type RecordRow } from './views.ts'

/** Tries, because others may create or delete the record meanwhile. */
const TRIES = 5

/** A record as sent in a bulk request or an import. */
export interface SentRecord {
  _id?: string
  values: JsonObject
}

export type Upserted = Written & { isNew: boolean }

/**
 * Amends the existing record, found by its `_id` or its primary key, or creates it.
 * @param newId id for a record that has a key and does not exist
 * @param indexed result of a preceding index lookup
 * @throws Failure as `RecordWriter.create` and `change`
 */
export const upsertRecord = async (
  services: ResourceServices,
  writer: RecordWriter,
  type: DataTypeRow,
  origin: WriteOrigin,
  sent: SentRecord,
  newId?: string,
  indexed?: IndexedKeys,
): Promise<Upserted> => {
  // A repeated request finds the record that it created and returns it again.
  const madeId = newId ?? sent._id?.toLowerCase() ?? origin.ids.next()
  const made = await writer.madeBefore(origin, madeId)
  if (made !== undefined) return { ...made, isNew: sent._id === undefined || made.row.version === 1 }
  for (let tries = 1; ; tries++) {
    const id = await idOf(services, writer, type, origin, sent, tries === 1 ? indexed : undefined)
    try {
      if (id === undefined) {
        const asked = sent._id === undefined ? type.primaryKey : undefined
        return { ...(await writer.create(origin, { ...sent, _id: madeId, dataTypeId: type._id }, asked)), isNew: true }
      }
      const change = { id, kind: 'amend', body: { dataTypeId: type._id, values: sent.values } } as const
      return { ...(await writer.change(origin, change)), isNew: false }
    } catch (error) {
      if (tries === TRIES || !isOvertaken(error, type, id)) throw error
    }
  }
}

/** Existing record: by `_id`, else by the primary key. @throws Failure invalid, forbidden if the role hides the key */
const idOf = async (
  { tables }: ResourceServices,
  writer: RecordWriter,
  type: DataTypeRow,
  { organizationId, caller }: WriteOrigin,
  { _id, values }: SentRecord,
  indexed: IndexedKeys | undefined,
): Promise<string | undefined> => {
  if (_id !== undefined) {
    const row = await tables.get<RecordRow>(RECORDS, organizationId, _id.toLowerCase())
    return row?._id
  }
  if (caller !== undefined) assertFieldsShown(caller, [type], [type.primaryKey])
  const key = isObject(values) && Object.hasOwn(values, type.primaryKey) ? values[type.primaryKey] : undefined
  if (key === undefined || isEmpty(key))
    throw invalid(`/values/${type.primaryKey}`, 'is required: records are found by it')
  return writer.keys.idOf(organizationId, type, key, indexed)
}

/** Whether the record was created or deleted by someone else since the lookup. */
const isOvertaken = (error: unknown, { primaryKey }: DataTypeRow, id: string | undefined): boolean => {
  if (!(error instanceof Failure)) return false
  if (id !== undefined) return error.code === 'not_found'
  return error.code === 'key_in_use' && error.details.errors?.[0]?.path === `/values/${primaryKey}`
}
