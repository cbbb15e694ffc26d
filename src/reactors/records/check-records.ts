import {
  DATA_TYPE,
  DATA_TYPE_STREAMS,
  RECORD_CHECK_STREAMS,
  RECORDS_CHECKED,
  type RecordsChecked,
} from '../../features/data/events.ts'
import { DATA_TYPES, type DataTypeRow, RECORDS, type RecordRow, valueIn } from '../../features/data/views.ts'
import { decodeJson, encodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type IsOurs } from '../../kit/consumers/follower.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { Services } from '../../kit/services.ts'

export const CHECK_RECORDS = 'check-records'

const PAGE_ROWS = 250
const SETTLE_MS = 5_000

interface CheckServices extends Pick<Services, 'log' | 'tables' | 'clock' | 'logger'> {
  /** Waits for the tables. */
  settle: Settle
  isOurs?: IsOurs
}

/**
 * Checks the records of a changed data type against its present fields, page by page: each page is a fact, from which
 * the records' rows follow. A type that changes again starts over, and the check before it ends at its place.
 */
export const checkRecords = (services: CheckServices): Follower =>
  new Follower(services, {
    name: CHECK_RECORDS,
    source: { prefixes: [DATA_TYPE_STREAMS] },
    handle: async ({ events }, signal) => {
      const changed = events.filter(({ type }) => type === DATA_TYPE.changed)
      if (changed.length === 0) return undefined
      for (const event of changed) if (!signal.aborted) await checkType(services, event, signal)
      return []
    },
  }).start(services.tables)

/** @throws Error when the tables are behind. */
const checkType = async (services: CheckServices, event: RecordedEvent, signal: AbortSignal): Promise<void> => {
  const { log, tables, settle } = services
  if (!(await settle({ position: event.position, types: [event.type] }, SETTLE_MS)))
    throw new Error(`the tables do not have the change of ${event.stream} yet`)
  const dataTypeId = idOfStream(event.stream)
  const { organizationId } = decodeJson<ResourceData>(event.data)
  const version = event.revision + 1
  for (let after: string | null | undefined; after !== null && !signal.aborted; ) {
    const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId)
    if (type === undefined || type.version !== version) return
    const page = await tables.find<RecordRow>(RECORDS, organizationId, {
      where: { dataTypeId },
      limit: PAGE_ROWS,
      after,
    })
    const rows = page.rows.map(({ row }) => row)
    const data: RecordsChecked = {
      organizationId,
      dataTypeId,
      version,
      ids: rows.map(({ _id }) => _id),
      invalidIds: await danglingIn(services, type, rows),
      isLast: page.next === null,
    }
    // The same page of the same check is the same event, whichever process repeats it.
    const id = idFrom(RECORDS_CHECKED, dataTypeId, version, page.rows.at(0)?.id ?? '')
    const metadata = { organizationId, actor: `reactor:${CHECK_RECORDS}`, $causationId: event.id }
    await log.append(
      RECORD_CHECK_STREAMS + dataTypeId,
      [{ id, type: RECORDS_CHECKED, data: encodeJson(data), isJson: true, metadata }],
      'any',
    )
    after = page.next
  }
}

/** Records that name missing ones. */
const danglingIn = async (
  { tables }: CheckServices,
  type: DataTypeRow,
  rows: readonly RecordRow[],
): Promise<string[]> => {
  const dangling = new Set<string>()
  for (const field of type.fields) {
    if (field.type !== 'reference') continue
    const naming = rows.filter(({ values }) => valueIn(values, field._id) !== undefined)
    const ids = naming.map(({ values }) => String(valueIn(values, field._id)))
    const named = await tables.getMany<RecordRow>(RECORDS, type.organizationId, ids)
    for (const [i, row] of naming.entries()) if (named[i]?.dataTypeId !== field.dataTypeId) dangling.add(row._id)
  }
  return [...dangling]
}
