import { test } from 'tap'
import { notifications } from '../../projections/notifications.ts'
import { NOTIFICATION_MADE, notificationStream } from '../../src/features/notifications/events.ts'
import { NOTIFICATIONS, NOTIFIED_USERS } from '../../src/features/notifications/views.ts'
import { encodeJson, type RecordedEvent } from '../../src/kernel/event.ts'
import type { Rows } from '../../src/kit/consumers/projection.ts'

test('an event of which a broken commit stored one of two rows makes the other when it comes again', async (t) => {
  const stored = new Map<string, unknown>()
  const rows = {
    get: async (table: string, _scope: string, id: string) => stored.get(`${table} ${id}`),
    put: (table: string, _scope: string, id: string, row: unknown) => void stored.set(`${table} ${id}`, row),
  } as unknown as Rows
  const made = { organizationId: 'o', userId: 'u', notificationId: 'n', at: '2026-05-04T09:30:00.000Z', text: 'Late' }
  const event = { type: NOTIFICATION_MADE, stream: notificationStream('u'), data: encodeJson(made) }
  const again = () => notifications.apply(event as unknown as RecordedEvent, rows)
  const [one, user] = [`${NOTIFICATIONS.name} n`, `${NOTIFIED_USERS.name} u`]

  await again()
  stored.set(one, { ...(stored.get(one) as object), isRead: true })
  stored.delete(user)
  await again()
  t.same(stored.get(user), { organizationId: 'o', firstAt: made.at })
  t.match(stored.get(one), { isRead: true }, 'and is not unread again')
  stored.delete(one)
  await again()
  t.match(stored.get(one), { isRead: false })
})
