import { pagesOf } from '../../engines/table-store.ts'
import { expireNotifications } from '../../features/notifications/notification.ts'
import { NOTIFIED_USERS, type NotifiedUserRow } from '../../features/notifications/views.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Services } from '../../kit/services.ts'

const KEPT_MS = 30 * 86_400_000
const PAGE_ROWS = 500

export const sweepNotifications = async (
  { log, tables, clock }: Pick<Services, 'log' | 'tables' | 'clock'>,
  signal: AbortSignal,
): Promise<void> => {
  const now = clock.now()
  const before = formatTime(now - KEPT_MS)
  const metadata = { actor: 'reactor:sweep' }
  const question = { range: { field: 'firstAt', to: before }, limit: PAGE_ROWS }
  for await (const page of pagesOf<NotifiedUserRow>(tables, NOTIFIED_USERS.name, NO_ORGANIZATION, question))
    for (const { id: userId, row } of page) {
      if (signal.aborted) return
      const { organizationId } = row
      const context = { ids: idSource(now), metadata: { ...metadata, organizationId } }
      await expireNotifications(log, { organizationId, userId, before }, context)
    }
}
