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
  /** By the key of the field, which a new name does not change. */
  values: JsonObject
  /** Records that they name. */
  recordIds: string[]
  /** What only one may have, as far as the record has taken it. */
  uniques?: UniqueValue[]
}

/** What the streams `dataCheck-<data type>` hold: a page of records that were held against a changed type. */
export const RECORDS_CHECKED = 'recordsChecked.v1'
export const RECORD_CHECK_STREAMS = 'dataCheck-'

export interface RecordsChecked {
  organizationId: string
  dataTypeId: string
  /** The version of the type. */
  version: number
  ids: string[]
  /** Those of `ids` that name what is not there; what is shared, and what the fields say, is seen from the rows. */
  invalidIds: string[]
  isLast: boolean
}

/** The fields of a type, as its events have them. */
export const fieldsOf = (values: JsonObject): StoredField[] => values.fields as unknown as StoredField[]
