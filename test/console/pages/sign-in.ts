import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'tap'
import { openKeyring } from '../../../src/kit/keys/keyring-file.ts'
import { skip } from '../../support/browser.ts'
import { openConsole, sharedService } from '../../support/console.ts'
import { codeAt } from '../../support/code-at.ts'
import { ask, signUp, until } from '../../support/service.ts'

const PASSWORD = 'Another-horse-8-battery'
const STEP_MS = 30_000

test('signing in: back from Microsoft, and with a second factor', { skip, timeout: 900_000 }, async (t) => {
  const service = await sharedService()
  const { token, email, password, organizationId, hubId } = await signUp(service)
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  const shown = () => page.getByRole('list', { name: 'Trackers' }).waitFor()
  const button = (name: string) => page.getByRole('button', { name })
  const problem = page.locator('.problem:not(:empty)')
  const signIn = async (as: string, secret: string): Promise<void> => {
    await page.context().clearCookies()
    await page.goto('about:blank')
    await page.goto(service.url)
    await page.fill('[name=email]', as)
    await page.fill('[name=password]', secret)
    await button('Sign in').click()
  }

  let identityId = ''
  await until('the identity in the audit log', async () => {
    const { data } = await ask(service, 'GET', '/audit-log?noun=identity', { token })
    identityId = data[0]?.resourceId ?? ''
    return identityId !== ''
  })
  // What the callback of a sign-in with Microsoft sends the browser back with.
  const keyring = await openKeyring(join(service.data, 'keys.json'))
  const browserHash = createHash('sha256').update('began-here').digest('base64url')
  const end = Date.now() + 240_000
  const said = { identityId, organizationId, proofs: 0, browser: browserHash, until: end, salt: 'once' }
  const began = { name: 'waymark-browser', value: 'began-here', url: `${service.url}/api/v3/auth` }
  // From a page that is open already, only the fragment would change.
  await page.goto('about:blank')
  await page.context().addCookies([began])
  const code = keyring.encrypt('sign-in-code', JSON.stringify(said))
  await page.goto(`${service.url}/#code=${code}`)
  await shown()
  t.notMatch(page.url(), 'code=', 'the code leaves the address bar')
  await page.goBack()
  t.notMatch(page.url(), 'code=', 'and what the browser goes back to')
  await page.goto(`${service.url}/#code=${code}`)
  await problem.waitFor()
  t.ok(await page.getByLabel('Password').isVisible(), 'it serves once')
  t.notMatch(page.url(), 'code=')
  await page.goto('about:blank')
  await page.goto(`${service.url}/#error=forbidden`)
  await problem.waitFor()
  t.match(await problem.textContent(), 'The sign-in did not work')

  const { secret } = (await ask(service, 'POST', '/auth/second-factor', { token, body: { password } })).data
  const body = { code: codeAt(secret, Date.now()) }
  await ask(service, 'POST', '/auth/second-factor/confirm', { token, body })
  await signIn(email, password)
  await page.waitForSelector('[name=code]')
  t.notOk(await page.getByLabel('Password').isVisible())
  await page.fill('[name=code]', '000000')
  await button('Sign in').click()
  await problem.waitFor()
  await page.fill('[name=code]', codeAt(secret, Date.now() + STEP_MS))
  await button('Sign in').click()
  await shown()

  const roleId = (await ask(service, 'GET', '/roles?key=planner', { token })).data[0]._id
  const planner = { name: 'Planner', email: `planner.${email}`, password: PASSWORD, roleId, hubId: [hubId] }
  await ask(service, 'POST', '/user', { token, body: planner })
  await ask(service, 'PATCH', '/organization/settings', {
    token,
    body: { requiresSecondFactor: true, secondFactorFrom: 0 },
  })
  await signIn(planner.email, PASSWORD)
  const theirs = (await page.locator('form code').textContent()) ?? ''
  t.match(
    await page.getByRole('link', { name: 'Open the app' }).getAttribute('href'),
    new RegExp(`^otpauth://totp/.*secret=${theirs}`),
  )
  await page.fill('[name=code]', codeAt(theirs, Date.now()))
  await button('Turn it on').click()
  t.equal((await page.locator('form pre').textContent())?.split('\n').length, 10)
  await button('I have kept them').click()
  await shown()
  // The browser tells of answers that refuse what is wrong on purpose.
  const unexpected = complaints.filter((text) => !/Failed to load resource: .* (400|401|403)/.test(text))
  t.same(unexpected, [], 'no error in the console, no breach of the content policy')
})
