import { expireNotifications } from '../../features/notifications/notification.ts'
import { NOTIFIED_USERS, type NotifiedUserRow } from '../../features/notifications/views.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Services } from '../../kit/services.ts'

const KEPT_MS = 30 * 86_400_000
const PAGE_ROWS = 500

/** Lets go of what users were told longer ago than it is kept. */
export const sweepNotifications = async (
  { log, tables, clock }: Pick<Services, 'log' | 'tables' | 'clock'>,
  signal: AbortSignal,
): Promise<void> => {
  const now = clock.now()
  const before = formatTime(now - KEPT_MS)
  const metadata = { actor: 'reactor:sweep' }
  for (let after: string | undefined; ; ) {
    const { rows, next } = await tables.find<NotifiedUserRow>(NOTIFIED_USERS.name, NO_ORGANIZATION, {
      range: { field: 'firstAt', to: before },
      limit: PAGE_ROWS,
      after,
    })
    for (const { id: userId, row } of rows) {
      if (signal.aborted) return
      const { organizationId } = row
      const context = { ids: idSource(now), metadata: { ...metadata, organizationId } }
      await expireNotifications(log, { organizationId, userId, before }, context)
    }
    if (next === null) return
    after = next
  }
}
