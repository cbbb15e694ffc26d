import { HistoryRows } from '../engines/clickhouse-sql/rows.ts'
import { pagesOf } from '../engines/table-store.ts'
import { AUDIT, AUDIT_LOG, type AuditRow } from '../features/audit/views.ts'
import { Failure } from '../kernel/errors.ts'
import type { Settle } from '../kit/consumers/settle.ts'
import type { Services } from '../kit/services.ts'
import type { DeletedRecords } from '../processes/erase-organization.ts'

const PAGE_ROWS = 500
const CATCH_UP_MS = 10_000

/** Deletions in the audit log, oldest first, once it has everything that was logged before the call. */
export const deletedRecords = (
  { log, history, clock }: Pick<Services, 'log' | 'history' | 'clock'>,
  settle: Settle,
): DeletedRecords =>
  async function* (organizationId) {
    const position = await log.headPosition()
    if (!(await settle({ types: [], position }, CATCH_UP_MS, [{ consumer: AUDIT }]))) throw new Failure('engine_down')
    const rows = new HistoryRows(history, clock)
    const sort = { field: 'at', order: 'asc' } as const
    const question = { where: { action: 'deleted' }, sort, limit: PAGE_ROWS }
    for await (const page of pagesOf<AuditRow>(rows, AUDIT_LOG.name, organizationId, question))
      for (const { row } of page) yield { noun: row.noun, id: row.resourceId }
  }
