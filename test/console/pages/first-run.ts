import { test } from 'tap'
import { request } from 'undici'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { openConsole, sharedService } from '../../support/console.ts'
import { until } from '../../support/service.ts'

const STEP_MS = 10_000
const STEPS = 30

test('an empty organization leads to its first phone, geofence and automation', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { page, complaints } = await openConsole(t, await sharedService())
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  await button(/New here/).click()
  await page.getByLabel('Your name').fill('Ada')
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill('correct horse battery staple')
  await page.getByRole('textbox', { name: 'Organization' }).fill('Green Couriers')
  await page.getByLabel('First site').fill('Depot')
  await page.getByLabel('Where it is').fill('somewhere')
  await button('Make an organization').click()
  await page.getByRole('alert').filter({ hasText: 'Give latitude and longitude' }).waitFor()
  t.equal(await page.getByLabel('Your name').inputValue(), 'Ada', 'nothing that was typed is lost')
  t.same(await axe(page), [], 'signing up')
  await page.getByLabel('Where it is').fill('52.23, 21.01')
  await button('Make an organization').click()
  await page.getByText('No tracker has sent a position yet').waitFor()
  const steps = page.getByRole('region', { name: 'First steps' })
  await steps.waitFor()
  t.same(await axe(page), [], 'the first steps')

  await steps.getByRole('button', { name: 'Connect a phone' }).click()
  const dialog = page.getByRole('dialog', { name: 'Connect a phone' })
  await dialog.getByLabel('Name').fill("Ada's phone")
  await dialog.getByRole('button', { name: 'Connect a phone' }).click()
  await dialog.getByRole('img', { name: 'QR' }).waitFor()
  await dialog.getByText('A phone cannot reach this address: 127.0.0.1').waitFor()
  t.same(await axe(page), [], 'the code')
  const link = (await dialog.getByRole('link').getAttribute('href')) ?? ''
  const phone = phoneOf(link)
  const begun = Date.now() - STEPS * STEP_MS
  await phone({ lat: 52.2, lng: 21, at: begun })
  await dialog.getByText("Ada's phone is connected.").waitFor()
  await dialog.getByRole('button', { name: 'Show it on the map' }).click()
  await page.getByRole('heading', { name: "Ada's phone" }).waitFor()
  await button('Close').click()

  await steps.getByRole('button', { name: 'Draw a geofence' }).click()
  await button('+ Circle').click()
  await page.getByLabel('Name').fill('Home')
  await page.getByLabel('Centre').fill('52.2, 21')
  await page.getByLabel('Centre').press('Tab')
  await page.getByText('Inside now: 1').waitFor()
  await button('Save').click()
  await page.getByText('Saved.').waitFor()

  await page.getByRole('link', { name: 'Map', exact: true }).click()
  await steps.getByRole('button', { name: 'Let an automation tell you' }).click()
  const automation = page.getByRole('dialog', { name: 'Let an automation tell you' })
  t.same(await axe(page), [], 'the automation')
  await automation.getByRole('button', { name: 'Save' }).click()
  await automation.getByText('It works from now on.').waitFor()
  await automation.getByRole('button', { name: 'Close' }).click()
  await until('the steps to be over', async () => (await steps.count()) === 0)
  await button('+ Connect a phone').click()
  await dialog.getByLabel('Name').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()

  for (let i = 1; i <= STEPS; i++) await phone({ lat: 52.2 + i * 0.0015, lng: 21, at: begun + i * STEP_MS })
  await button(/^Notifications, \d unread$/).click()
  await page.getByText("Ada's phone: a tracker begins a trip").waitFor()
  const events = page.getByRole('list', { name: 'Events' })
  await events.getByText("Ada's phone left Home").waitFor()
  const refused = complaints.filter((text) => !/Failed to load resource: .* 404/.test(text))
  t.same(refused, [], 'no error in the console, no breach of the content policy')
})

/** A phone with OwnTracks that has scanned the code. */
const phoneOf = (link: string): ((at: { lat: number; lng: number; at: number }) => Promise<void>) => {
  const inline = new URLSearchParams(link.split('?')[1]).get('inline') ?? ''
  const { url, username, password } = JSON.parse(Buffer.from(inline, 'base64').toString()) as { [name: string]: string }
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return async ({ lat, lng, at }) => {
    const body = JSON.stringify({ _type: 'location', lat, lon: lng, tst: Math.round(at / 1000) })
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await request(url!, { method: 'POST', headers, body })
    if (answer.statusCode !== 200) throw new Error(`the phone was answered ${answer.statusCode}`)
    await answer.body.dump()
  }
}
