import type { JsonObject } from '../../kernel/json.ts'
import { eventTypes, type ResourceData } from '../../kit/commands/declared-event.ts'
import type { UniqueValue } from '../../kit/resource/declaration.ts'
import type { StoredField } from './fields.ts'

export const DATA_TYPE = eventTypes('dataType')
export const DATA_TYPE_STREAMS = 'dataType-'
export const RECORD = eventTypes('data')
export const RECORD_STREAMS = 'data-'

export interface DataTypeData extends ResourceData {
  values: JsonObject & { name: string; primaryKey: string }
}

export interface RecordValues {
  dataTypeId: string
  /** By the key of the field, which renames do not change. */
  values: JsonObject
  recordIds: string[]
  /** Unique values that the record has claimed. */
  uniques?: UniqueValue[]
}

/** Page of records checked against a changed type, in the streams `dataCheck-<data type>`. */
export const RECORDS_CHECKED = 'recordsChecked.v1'
export const RECORD_CHECK_STREAMS = 'dataCheck-'

export interface RecordsChecked {
  organizationId: string
  dataTypeId: string
  version: number
  ids: string[]
  /** Ids whose references are dangling; shared values and faults of values follow from the rows. */
  invalidIds: string[]
  isLast: boolean
}

export const fieldsOf = (values: JsonObject): StoredField[] => values.fields as unknown as StoredField[]
