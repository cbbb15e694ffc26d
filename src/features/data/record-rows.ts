import { breathe } from '../../kernel/breath.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import type { RowSource } from '../../kit/resource/rows.ts'
import {
  DATA_TYPE,
  DATA_TYPE_STREAMS,
  type DataTypeData,
  fieldsOf,
  RECORD,
  RECORD_CHECK_STREAMS,
  RECORDS_CHECKED,
  type RecordsChecked,
  type RecordValues,
} from './events.ts'
import { changesRecords } from './fields.ts'
import { areValid, indexOf, type Shape, slotNames } from './record-index.ts'
import { CHECKS, type CheckRow, type RecordRow, RECORDS } from './views.ts'

/** Records with what finds them, by the fields that their type has now; the types' fields are kept beside. */
export const recordRows = (plain: RowSource): RowSource => ({
  tables: [indexed(plain.tables[0]), CHECKS],
  prefixes: [...plain.prefixes, DATA_TYPE_STREAMS, RECORD_CHECK_STREAMS],
  inputs: [...plain.inputs, ...Object.values(DATA_TYPE), RECORDS_CHECKED],
  apply: async (event, rows) => {
    if (event.type === RECORDS_CHECKED) return applyCheck(decodeJson<RecordsChecked>(event.data), rows)
    const id = idOfStream(event.stream)
    const data = decodeJson<DataTypeData>(event.data)
    if (event.stream.startsWith(DATA_TYPE_STREAMS))
      return applyType(event.type, { ...data, id, version: event.revision + 1 }, rows)
    await plain.apply(event, rows)
    if (event.type === RECORD.deleted) return
    const { dataTypeId } = data.values as unknown as RecordValues
    const check = await rows.get<CheckRow>(CHECKS.name, data.organizationId, dataTypeId)
    const row = await rows.get<RecordRow>(RECORDS, data.organizationId, id)
    if (row !== undefined && check !== undefined) putIndexed(rows, { ...check, _id: dataTypeId }, row, false)
  },
})

const indexed = (table: TableDeclaration): TableDeclaration => ({
  ...table,
  equality: [...(table.equality ?? []), 'terms', 'isInvalid'],
  range: [...(table.range ?? []), ...slotNames],
  sparse: slotNames,
  text: ['words'],
})

const applyType = async (
  type: string,
  { organizationId, id, version, values }: DataTypeData & { id: string; version: number },
  rows: Rows,
): Promise<void> => {
  if (type === DATA_TYPE.deleted) return rows.delete(CHECKS.name, organizationId, id)
  const before = await rows.get<CheckRow>(CHECKS.name, organizationId, id)
  const { primaryKey } = values
  const isChanged = before !== undefined && changesRecords(before as never, values)
  const row: CheckRow = {
    version,
    primaryKey,
    fields: fieldsOf(values),
    isRunning: isChanged || before?.isRunning === true,
  }
  rows.put(CHECKS.name, organizationId, id, row)
}

const applyCheck = async (
  { organizationId, dataTypeId, version, ids, invalidIds, isLast }: RecordsChecked,
  rows: Rows,
): Promise<void> => {
  const check = await rows.get<CheckRow>(CHECKS.name, organizationId, dataTypeId)
  if (check === undefined) return
  const shape = { ...check, _id: dataTypeId }
  for (const id of ids) {
    const pause = breathe()
    if (pause !== undefined) await pause
    const row = await rows.get<RecordRow>(RECORDS, organizationId, id)
    if (row !== undefined) putIndexed(rows, shape, row, invalidIds.includes(id))
  }
  if (isLast && check.version === version)
    rows.put(CHECKS.name, organizationId, dataTypeId, { ...check, isRunning: false })
}

const putIndexed = (rows: Rows, shape: Shape, row: RecordRow, isInvalid: boolean): void => {
  const { _id, organizationId, version, createdAt, updatedAt, dataTypeId, values, recordIds, files, fileIds } = row
  rows.put(RECORDS, organizationId, _id, {
    ...{ _id, organizationId, version, createdAt, updatedAt, dataTypeId, values, recordIds },
    ...(files !== undefined && { files, fileIds }),
    ...indexOf(shape, values),
    ...((isInvalid || !areValid(shape, values)) && { isInvalid: true }),
  })
}
