import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { dataOf } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import { type ResourceData, rowAfter } from '../../kit/commands/declared-event.ts'
import { RECORD, RECORD_STREAMS } from '../data/events.ts'

interface Services {
  log: Pick<EventLog, 'read'>
  tables: Pick<TableStore, 'getMany'>
}

/** Records as they are, and those deleted after a time as they last were: work done then may name them. */
export const recordsAt = ({ log, tables }: Services, atMs: number): Services['tables'] => ({
  getMany: async <R extends Row>(table: string, organizationId: string, ids: readonly string[]) => {
    const rows = await tables.getMany<R>(table, organizationId, ids)
    return Promise.all(rows.map((row, i) => row ?? deletedAfter<R>(log, organizationId, ids[i], atMs)))
  },
})

const deletedAfter = async <R extends Row>(
  log: Services['log'],
  organizationId: string,
  id: string,
  atMs: number,
): Promise<R | undefined> => {
  const [last] = await log.read(RECORD_STREAMS + id, 'end', 1, 'backwards')
  if (last?.type !== RECORD.deleted) return undefined
  const data = dataOf<ResourceData>(last)
  const isLater = data.organizationId === organizationId && Date.parse(data.at) > atMs
  return isLater ? (rowAfter(last, data) as R) : undefined
}
