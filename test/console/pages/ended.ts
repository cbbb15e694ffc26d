import type { Page } from 'playwright-core'
import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { type ConsoleWorld, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

/** Ends every session but the one of the test, and waits until the page says so. */
const endSessions = async (page: Page, { service, token }: ConsoleWorld): Promise<void> => {
  const { data } = await ask(service, 'GET', '/auth/sessions', { token })
  for (const { jti, isCurrent } of data) if (!isCurrent) await ask(service, 'DELETE', `/auth/session/${jti}`, { token })
  await cover(page).getByText('Your session has ended').waitFor()
}

const cover = (page: Page) => page.getByRole('dialog', { name: 'Sign in' })

const signInAgain = async (page: Page, { email, password }: ConsoleWorld['login']): Promise<void> => {
  await page.keyboard.type(email)
  await page.keyboard.press('Tab')
  await page.keyboard.type(password)
  await page.keyboard.press('Enter')
  await cover(page).waitFor({ state: 'detached' })
}

test('a session that ends in the middle of a form', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { page, complaints } = await openConsole(t, world.service, { hasMap: false })
  await signIn(page, world.login)
  await page.evaluate("location.hash = '#/account'")
  const name = page.getByRole('textbox', { name: 'Name', exact: true })
  await name.fill('Grace')
  await endSessions(page, world)
  t.equal(await page.getByText('Your role does not allow').count(), 0, 'nobody is signed in whose role lacks anything')
  await signInAgain(page, world.login)
  t.equal(await name.inputValue(), 'Grace', 'on the page of the account')

  await page.evaluate("location.hash = '#/map'")
  await page.getByRole('region', { name: 'First steps' }).getByRole('button', { name: 'Connect a phone' }).click()
  const phone = page.getByRole('dialog', { name: 'Connect a phone' })
  await phone.getByLabel('Name').fill('Van')
  await endSessions(page, world)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  // It cannot be closed.
  await cover(page).waitFor()
  await signInAgain(page, world.login)
  t.equal(await phone.getByLabel('Name').inputValue(), 'Van', 'in a dialog')

  await phone.getByRole('button', { name: 'Close' }).click()
  await page.evaluate("location.hash = '#/fences'")
  await page.getByRole('button', { name: '+ Circle' }).click()
  await endSessions(page, world)
  t.equal(
    await page.getByText('Your role does not allow').count(),
    0,
    'nor is anything said of the role beside a draft',
  )
  await signInAgain(page, world.login)
  await page.getByLabel('Centre').waitFor()
  const unexpected = complaints.filter((text) => !/Failed to load resource: .* 401/.test(text))
  t.same(unexpected, [], 'nothing breaks')
})

test('who signs in after somebody else sees nothing of theirs', { skip, timeout: 900_000 }, async (t) => {
  const [world, other] = [await openConsoleWorld(t), await openConsoleWorld(t)]
  for (const [externalId, { gateway }] of [
    ['theirs', world],
    ['own', other],
  ] as const) {
    await gateway.send([{ externalId, recordedAt: Date.now(), lat: 52, lng: 21 }])
    await gateway.drained()
  }
  const { page } = await openConsole(t, world.service, { hasMap: false })
  await signIn(page, world.login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'theirs')
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('A secret place')
  await endSessions(page, world)
  await signInAgain(page, other.login)
  await page.getByRole('button', { name: '+ Circle' }).waitFor()
  await page.getByRole('link', { name: 'Map', exact: true }).click()
  await until('the own tracker', async () => (await namesListed(page)).join() === 'own')
})

test('who signs in again goes on in the organization that the page shows', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway, groupId } = world
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const other = { organizationName: 'Other', hubName: 'There', hubLat: 52, hubLng: 21 }
  await ask(service, 'POST', '/organization', { token, body: other })
  const signedIn = (to: object): Promise<Json> => ask(service, 'POST', '/auth/login', { body: { ...login, ...to } })
  const own = await signedIn({ organizationId: world.organizationId })
  const { organizationId } = own.organizations.find((one: Json) => one.organizationName === 'Other')
  const { page, context } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  // The tab keeps the one that it opened; the browser, and so the next sign-in, has the other one.
  await page.evaluate(`sessionStorage.setItem('waymark-organization', '${world.organizationId}')`)
  await page.reload()
  await until('the tracker', async () => (await namesListed(page)).join() === 'van')
  const tab = await context.newPage()
  await tab.goto(service.url)
  await tab.getByRole('button', { name: 'Account', exact: true }).click()
  await tab.getByLabel('Organization').selectOption({ label: 'Other' })
  await tab.locator('.brand', { hasText: 'Other' }).waitFor()
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('Yard')
  await page.getByLabel('Centre').fill('52.03, 21')
  await signedIn({ organizationId })
  await endSessions(page, { ...world, token: own.token })
  await signInAgain(page, login)
  t.match(await page.locator('.brand').textContent(), /^Test \d+$/)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.').waitFor()
  const { data: fences } = await ask(service, 'GET', '/geofences', { token: own.token })
  t.match(fences, [{ name: 'Yard', geofenceGroupId: groupId }])
})
