import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { test } from 'tap'
import { CHROMIUM, FLAGS, skip } from '../support/browser.ts'
import { folderOf } from '../support/folder-of.ts'
import { mailsIn, type ReadMail } from '../support/read-mail.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Another-horse-8-battery'

test('whoever opens the link of a mail in a browser can follow it', { skip, timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, email } = await signUp(service)
  const roleId = (await ask(service, 'GET', '/roles?key=planner', { token })).data[0]._id
  await ask(service, 'POST', '/user/invite', { token, body: { email: 'ada@example.com', roleId } })
  const linkTo = async (to: string, path: string): Promise<string> => {
    const linkIn = ({ headers, text }: ReadMail): string | undefined =>
      headers.to === to ? new RegExp(`${service.url}/${path}\\?token=[\\w-]+`).exec(text)?.[0] : undefined
    let link: string | undefined
    await until(`a link to ${path}`, () => {
      link = mailsIn(join(service.data, 'mail')).map(linkIn).find(Boolean)
      return link !== undefined
    })
    return link as string
  }
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, timeout: 900_000 })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  page.setDefaultTimeout(240_000)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  const fill = async (link: string, fields: { [name: string]: string }): Promise<void> => {
    await page.goto(link)
    await page.waitForSelector('#send:not(:empty)')
    t.notMatch(page.url(), 'token=', 'the secret leaves the address bar')
    for (const [name, value] of Object.entries(fields)) await page.fill(`[name=${name}]`, value)
    await page.click('#send')
  }

  const invitation = await linkTo('ada@example.com', 'accept-invitation')
  await fill(invitation, { name: 'Ada', password: PASSWORD })
  await page.waitForSelector('#done:not([hidden])')
  t.equal(
    (await call(service, 'POST', '/auth/login', { body: { email: 'ada@example.com', password: PASSWORD } })).status,
    200,
  )
  await fill(invitation, { password: PASSWORD })
  await page.waitForSelector('#problem:not(:empty)')
  t.match(await page.textContent('#problem'), 'is of no link that can be followed')

  await fill(`${service.url}/forgot-password`, { email: 'ada@example.com' })
  await page.waitForSelector('#done:not([hidden])')
  await fill(await linkTo('ada@example.com', 'reset-password'), { password: `${PASSWORD}-2` })
  await page.waitForSelector('#done:not([hidden])')
  const body = { email: 'ada@example.com', password: `${PASSWORD}-2` }
  t.equal((await call(service, 'POST', '/auth/login', { body })).status, 200)

  await fill(await linkTo(email, 'verify-email'), { password: PASSWORD })
  await page.getByRole('list', { name: 'Trackers' }).waitFor()
  t.equal(await page.getByLabel('Password').isVisible(), false, 'the link of a sign-up leaves its owner signed in')
  t.same(
    await page.evaluate('Object.values({ ...localStorage, ...sessionStorage }).filter((text) => text.length > 100)'),
    [],
    'the token stays in no storage',
  )
  t.equal((await call(service, 'POST', '/auth/login', { body: { email, password: PASSWORD } })).status, 200)
  t.same(complaints, [])
  t.notMatch(service.lines.join('\n'), 'token=', 'no link in the log of the process')
})
