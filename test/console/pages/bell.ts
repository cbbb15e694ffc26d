import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, call, type Json, samplesMade, until } from '../../support/service.ts'

const PAGE = 30
const PAGES = 18

test('the list of the bell is filled also where it is longer than a page of the service', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, hubId } = await openConsoleWorld(t)
  const { data: me } = await ask(service, 'GET', '/user', { token })
  await samplesMade(service, token)
  const automation = {
    ...{ name: 'New tasks', event: 'onTaskCreated', automationType: 'notification' },
    automationDetails: { channel: 'inApp', to: me._id, text: 'There is {{task.title}}' },
  }
  await ask(service, 'POST', '/automation', { token, body: automation })
  const { data: flows } = await ask(service, 'GET', '/flows?key=delivery', { token })
  const { page } = await openConsole(t, service, { hasMap: false })
  const rowOf = (_id: string): Json => ({ _id, text: `Row ${_id}.`, isRead: true, createdAt: '2026-11-30T12:00:00Z' })
  const rows = Array.from({ length: PAGE * PAGES + 1 }, (_, i) => rowOf(String(i)))
  await page.route('**/api/v3/notifications?*', async (route) => {
    const query = new URL(route.request().url()).searchParams
    // The service itself says what it refuses.
    const limit = query.get('limit')!
    const { status, json } = await call(service, 'GET', `/notifications?limit=${limit}`, { token })
    if (status !== 200) return route.fulfill({ status, json })
    const from = Number(query.get('cursor') ?? 0)
    const next = from + Number(limit)
    const data = query.has('unread') ? [] : rows.slice(from, next)
    await route.fulfill({ json: { data, nextCursor: next < rows.length ? String(next) : null, total: data.length } })
  })
  await signIn(page, login)
  await page.getByRole('button', { name: 'Notifications', exact: true }).click()
  const list = page.getByRole('list', { name: 'Notifications' })
  const shown = (): Promise<number> => list.getByRole('listitem').count()
  for (let pages = 1; pages < PAGES; pages++) {
    await until('one more page', async () => (await shown()) === pages * PAGE)
    // Clicked twice, it is one more page all the same.
    await page.getByRole('button', { name: 'Show more' }).dblclick()
  }
  await until('all pages', async () => (await shown()) === PAGE * PAGES)
  // One that is heard of: the list is read anew.
  rows.unshift(rowOf('new'))
  await ask(service, 'POST', '/task', { token, body: { flowId: flows[0]._id, title: 'Deliver', hubId } })
  await list.getByText('Row new.').waitFor()
  t.equal(await shown(), PAGE * PAGES)
})
