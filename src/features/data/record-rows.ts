import { breathe } from '../../kernel/breath.ts'
import { dataOf, decodeJson } from '../../kernel/event.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import type { RowSource } from '../../kit/resource/rows.ts'
import { LATE_WRITES_MS } from '../../kit/resource/writes.ts'
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
import { hasUntaken, haveShared, markShared, unmarkLeft } from './shared-values.ts'
import { CHECKS, type CheckRow, type RecordRow, RECORDS, valueIn } from './views.ts'

/** Records with their index members, by the present fields of their types, which are stored in CHECKS. */
export const recordRows = (plain: RowSource): RowSource => ({
  tables: [indexed(plain.tables[0]), CHECKS],
  prefixes: [...plain.prefixes, DATA_TYPE_STREAMS, RECORD_CHECK_STREAMS],
  inputs: [...plain.inputs, ...Object.values(DATA_TYPE), RECORDS_CHECKED],
  apply: async (event, rows) => {
    if (event.type === RECORDS_CHECKED) return applyCheck(decodeJson<RecordsChecked>(event.data), event.loggedAt, rows)
    const id = idOfStream(event.stream)
    const data = dataOf<DataTypeData>(event)
    if (event.stream.startsWith(DATA_TYPE_STREAMS))
      return applyType(event.type, { ...data, id, version: event.revision + 1 }, rows)
    const { organizationId } = data
    const { dataTypeId } = data.values as unknown as Partial<RecordValues>
    const check =
      dataTypeId === undefined ? undefined : await rows.get<CheckRow>(CHECKS.name, organizationId, dataTypeId)
    const shape = { _id: dataTypeId, ...check } as Shape
    // Otherwise the writer has ensured that no value is shared.
    const isWatched =
      check !== undefined &&
      (check.isRunning ||
        check.hasShared === true ||
        event.loggedAt <= (check.judgedUntil ?? Number.NEGATIVE_INFINITY) ||
        hasUntaken(shape, data.values as unknown as RecordValues))
    const before =
      isWatched && event.type !== RECORD.created ? await rows.get<RecordRow>(RECORDS, organizationId, id) : undefined
    await plain.apply(event, rows)
    if (check === undefined) return
    const isGone = event.type === RECORD.deleted
    const row = isGone ? undefined : await rows.get<RecordRow>(RECORDS, organizationId, id)
    if (row !== undefined) putIndexed(rows, shape, row, row.isDangling === true)
    if (!isWatched) return
    const place = { rows, organizationId, shape }
    if (before?.isShared === true) await unmarkLeft(place, before)
    const { hasShared: hadShared = false, ...others } = check
    const hasShared =
      (!isGone && (await markShared(place, [id]))) ||
      (hadShared && (before?.isShared !== true || (await haveShared(place))))
    if (hasShared !== hadShared)
      rows.put(CHECKS.name, organizationId, shape._id, { ...others, ...(hasShared && { hasShared }) })
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
  // After a deletion that was reverted, there is no previous state to compare with.
  const isChanged = type === DATA_TYPE.changed && (before === undefined || changesRecords(before as never, values))
  const row: CheckRow = {
    ...(!isChanged && before),
    version,
    primaryKey,
    fields: fieldsOf(values),
    isRunning: isChanged || before?.isRunning === true,
  }
  rows.put(CHECKS.name, organizationId, id, row)
}

const applyCheck = async (
  { organizationId, dataTypeId, version, ids, invalidIds, isLast }: RecordsChecked,
  loggedAt: number,
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
  const place = { rows, organizationId, shape }
  const { hasShared: hadShared = false, ...others } = check
  const areShared = await markShared(place, ids)
  if (isLast && check.version === version) {
    const hasShared = areShared || (hadShared && (await haveShared(place)))
    const judgedUntil = loggedAt + LATE_WRITES_MS
    const next = { ...others, ...(hasShared && { hasShared }), isRunning: false, judgedUntil }
    rows.put(CHECKS.name, organizationId, dataTypeId, next)
  } else if (areShared && !hadShared) rows.put(CHECKS.name, organizationId, dataTypeId, { ...check, hasShared: true })
}

/** Records named in fields that the type still has. */
const stillNamed = ({ fields }: Shape, { values, recordIds }: RecordRow): readonly string[] => {
  const named = fields.flatMap(({ type, _id }) => (type === 'reference' ? [valueIn(values, _id)] : []))
  return recordIds.filter((id) => named.includes(id))
}

const putIndexed = (rows: Rows, shape: Shape, row: RecordRow, isDangling: boolean): void => {
  const { _id, organizationId, version, createdAt, updatedAt, dataTypeId, values, files, fileIds } = row
  const recordIds = stillNamed(shape, row)
  const indexed: Row = { _id, organizationId, version, createdAt, updatedAt, dataTypeId, values, recordIds }
  if (files !== undefined) Object.assign(indexed, { files, fileIds })
  Object.assign(indexed, indexOf(shape, values))
  if (isDangling) indexed.isDangling = true
  if (isDangling || !areValid(shape, values)) indexed.isInvalid = true
  rows.put(RECORDS, organizationId, _id, indexed)
}
