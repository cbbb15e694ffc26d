import { isDeepStrictEqual } from 'node:util'
import { test } from 'tap'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { codeAt } from '../../support/code-at.ts'
import { ask, call, samplesMade, until } from '../../support/service.ts'

const NEW_PASSWORD = 'Another-horse-8-battery'
const STEP_MS = 30_000
const HTML = '<img src=x onerror=alert(1)>'

test('a person looks after their account', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login } = await openConsoleWorld(t)
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const region = (name: string) => page.getByRole('region', { name, exact: true })
  await signIn(page, login)
  await button('Account').click()
  await page.getByRole('link', { name: 'Profile and security' }).click()
  await page.getByRole('heading', { name: 'Profile and security' }).waitFor()
  await region('Sessions').getByText('this session').waitFor()

  const profile = region('Profile')
  await profile.getByLabel('Name', { exact: true }).fill(HTML)
  await profile.getByLabel('Language').selectOption('Deutsch')
  await profile.getByLabel('Time zone').selectOption('Asia/Tokyo')
  await profile.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Profil und Sicherheit' }).waitFor()
  await page.locator('header').getByText('UTC').waitFor()
  await until('the profile', async () => {
    const { name, language, timeZone } = (await ask(service, 'GET', '/user', { token })).data
    return isDeepStrictEqual([name, language, timeZone], [HTML, 'de', 'Asia/Tokyo'])
  })
  await page.getByLabel('Sprache').selectOption('English')
  await page.getByRole('button', { name: 'Speichern' }).click()
  await page.getByRole('heading', { name: 'Profile and security' }).waitFor()
  await button('Account').click()
  await page.getByText(HTML).waitFor()
  await page.keyboard.press('Escape')
  t.equal(await page.locator('img').count(), 0, 'a name with HTML is text')

  // The session of the signup ends from here.
  await region('Sessions')
    .getByRole('button', { name: /^End session/ })
    .click()
  await region('Sessions').getByText('1 ended.').waitFor()
  await until('its token to be refused', async () => (await call(service, 'GET', '/users', { token })).status === 401)

  const password = region('Password')
  await password.getByLabel('Current password').fill('wrong-horse')
  await password.getByLabel('New password').fill(NEW_PASSWORD)
  await button('Change password').click()
  await password
    .getByRole('alert')
    .filter({ hasText: /password/i })
    .waitFor()
  await password.getByLabel('Current password').fill(login.password)
  await button('Change password').click()
  await password.getByText('The password is changed.').waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Profile and security' }).waitFor()
  t.equal((await call(service, 'POST', '/auth/login', { body: login })).status, 401, 'the old one opens nothing')

  const factor = region('Second factor')
  await factor.getByRole('button', { name: 'Set up' }).click()
  await factor.getByRole('alert').filter({ hasText: 'required' }).waitFor()
  t.equal(await factor.getByRole('alert').textContent(), '/password is required', 'said once')
  await factor.getByLabel('Current password').fill(NEW_PASSWORD)
  await factor.getByRole('button', { name: 'Set up' }).click()
  await factor.getByRole('img', { name: 'QR' }).waitFor()
  t.same(await axe(page), [], 'while a second factor is set up')
  const secret = (await factor.locator('code').textContent()) ?? ''
  await factor.getByLabel('Code of the app').fill('000000')
  await factor.getByRole('button', { name: 'Turn it on' }).click()
  await factor.getByRole('alert').filter({ hasText: /code/i }).waitFor()
  await factor.getByLabel('Code of the app').fill(codeAt(secret, Date.now()))
  await factor.getByRole('button', { name: 'Turn it on' }).click()
  const codes = factor.getByLabel('Recovery codes')
  await codes.waitFor()
  const [first] = ((await codes.textContent()) ?? '').split('\n')
  t.same(await axe(page), [], 'the recovery codes')
  await factor.getByRole('button', { name: 'I have kept them' }).click()
  await factor.getByText('Recovery codes left: 10.').waitFor()
  await page.reload()
  await factor.getByText('Recovery codes left: 10.').waitFor()
  await factor.getByLabel('Current password').fill(NEW_PASSWORD)
  await factor.getByLabel('Code of your app').fill(codeAt(secret, Date.now() + STEP_MS))
  await factor.getByRole('button', { name: 'Make new recovery codes' }).click()
  await codes.waitFor()
  const [fresh] = ((await codes.textContent()) ?? '').split('\n')
  t.not(fresh, first)
  await factor.getByRole('button', { name: 'I have kept them' }).click()
  await factor.getByLabel('Current password').fill(NEW_PASSWORD)
  await factor.getByLabel('Code of your app').fill(fresh!)
  await factor.getByRole('button', { name: 'Turn it off' }).click()
  await factor.getByText('It is off.').waitFor()
  await page.reload()
  await factor.getByText('It is off.').waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByLabel('Language').selectOption('العربية')
  await page.getByRole('button', { name: 'Save' }).click()
  await until('right to left', async () => (await page.getAttribute('html', 'dir')) === 'rtl')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, 'nothing sticks out')
  t.same(unexpected(complaints), [], 'no error in the console, no breach of the content policy')
})

/** The browser tells of answers that refuse what is wrong on purpose. */
const unexpected = (complaints: string[]): string[] =>
  complaints.filter((text) => !/Failed to load resource: .* (400|401|403|422)/.test(text))

test('the bell rings live, and another organization is opened', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, gateway, hubId, organizationId } = await openConsoleWorld(t)
  await samplesMade(service, token)
  const { data: people } = await ask(service, 'GET', '/users', { token })
  const automation = {
    ...{ name: 'New tasks', event: 'onTaskCreated', automationType: 'notification' },
    automationDetails: { channel: 'inApp', to: people[0]._id, text: 'There is {{task.title}}' },
    rules: { fields: { 'task.title': { minLength: 1 } } },
  }
  await ask(service, 'POST', '/automation', { token, body: automation })
  const { data: flows } = await ask(service, 'GET', '/flows?key=delivery', { token })
  await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat: 52.1, lng: 21 }])
  await gateway.drained()
  const other = { organizationName: 'Other', hubName: 'There', hubLat: 52, hubLng: 21 }
  await ask(service, 'POST', '/organization', { token, body: other })
  const { page, context, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  const named = async (name: string): Promise<void> => page.locator('.brand', { hasText: name }).waitFor()
  const ownName = /^Test \d+$/
  const menu = () => page.getByRole('button', { name: 'Account', exact: true }).click()
  const isOwn = async () => ownName.test(((await page.locator('.brand').textContent()) ?? '').trim())
  if (!(await isOwn())) {
    await menu()
    const options = await page.getByLabel('Organization').locator('option').allTextContents()
    await page.getByLabel('Organization').selectOption({ label: options.find((name) => ownName.test(name))! })
    await until('the first organization', isOwn)
  }
  await page.getByRole('list', { name: 'Trackers' }).waitFor()
  const own = await ask(service, 'POST', '/auth/login', { body: { ...login, organizationId } })
  const make = (title: string): Promise<void> =>
    ask(service, 'POST', '/task', { token: own.token, body: { flowId: flows[0]._id, title, hubId } })
  // The list has it only after it was heard.
  const none = { data: [], nextCursor: null, total: 0 }
  await page.route('**/api/v3/notifications?*', (route) => route.fulfill({ json: none }), { times: 2 })
  await make(HTML)
  await page.getByRole('button', { name: 'Notifications, 1 unread' }).click()
  const list = page.getByRole('list', { name: 'Notifications' })
  await list.getByText(`There is ${HTML}`).waitFor()
  t.same(await axe(page), [], 'the bell')
  await make('second')
  await list.getByText('There is second').waitFor()
  await list.getByRole('button', { name: 'Mark as read' }).first().click()
  await page.getByRole('button', { name: 'Notifications, 1 unread' }).waitFor()
  // Nothing tells of what came just before the page listened, and the list may lack it for a moment.
  await page.route('**/api/v3/notifications?*', (route) => route.fulfill({ json: none }), { times: 2 })
  await page.reload()
  await page.getByRole('button', { name: 'Notifications, 1 unread' }).click()
  const unread = async (): Promise<number> =>
    (await ask(service, 'GET', '/notifications?unread=true', { token: own.token })).total
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await page.getByRole('button', { name: 'Notifications', exact: true }).waitFor()
  await until('the service to know', async () => (await unread()) === 0)
  await page.keyboard.press('Escape')
  t.equal(await page.locator('img').count(), 0, 'a name with HTML is text')

  await until('the trackers', async () => (await namesListed(page)).length === 1)
  await menu()
  await page.getByLabel('Organization').selectOption({ label: 'Other' })
  await named('Other')
  await page.getByText('No tracker has sent a position yet').waitFor()
  t.same(await namesListed(page), [], 'nothing of the first is listed')
  await page.reload()
  await named('Other')
  const tab = await context.newPage()
  await tab.goto(service.url)
  await tab.locator('.brand', { hasText: 'Other' }).waitFor()
  await tab.close()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
  t.same(await axe(page), [], 'the keys')
  await page.getByRole('button', { name: 'Close' }).click()
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  const organizations = page.getByRole('list', { name: 'Organizations' })
  await organizations.getByRole('button', { name: /^Open Test/ }).click()
  await until('the first organization again', isOwn)
  await until('its trackers', async () => (await namesListed(page)).length === 1)
  t.same(unexpected(complaints), [], 'no error in the console, no breach of the content policy')
})
