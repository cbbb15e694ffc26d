import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

test('a geofence that is drawn while answers are late or lost is stored once, in the group that there is', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, groupId } = await openConsoleWorld(t)
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  const stored = async (): Promise<Json[]> => (await ask(service, 'GET', '/geofences', { token })).data
  const draw = async (name: string): Promise<void> => {
    await page.getByRole('button', { name: '+ Circle' }).click()
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Centre').fill('52.03, 21')
    await page.getByLabel('Centre').press('Tab')
  }
  const save = (): Promise<void> => page.getByRole('button', { name: 'Save', exact: true }).click()

  let answerGroups = (): void => undefined
  const late = new Promise<void>((resume) => {
    answerGroups = resume
  })
  await page.route('**/geofence-groups?*', (route) => late.then(() => route.continue()))
  await page.getByRole('link', { name: 'Geofences' }).click()
  await draw('Before its group')
  await save()
  answerGroups()
  await page.getByText('Saved.').waitFor()
  await until('it to be stored', async () => (await stored()).length === 1)
  t.equal((await stored())[0].geofenceGroupId, groupId)
  t.equal((await ask(service, 'GET', '/geofence-groups', { token })).data.length, 1, 'none was made beside it')

  await page.route('**/geofences?*', (route) => route.abort())
  await draw('Without a list')
  await save()
  await page.getByText('Saved.').waitFor()
  await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor()
  t.equal(await page.getByRole('form').count(), 0, 'there is nothing left to save once more')
  await until('the second one', async () => (await stored()).length === 2)
  await page.unroute('**/geofences?*')

  let answer = (): void => undefined
  const held = new Promise<void>((resume) => {
    answer = resume
  })
  await page.route('**/api/v3/geofence', (route) => held.then(() => route.continue()))
  await draw('Slow')
  await save()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await draw('Next')
  answer()
  await page.getByText('Saved.').waitFor()
  t.equal(await page.getByLabel('Name').inputValue(), 'Next', 'what is drawn meanwhile stays')
})
