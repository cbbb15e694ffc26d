import { chromium, type Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { CHROMIUM, FLAGS, skip } from '../support/browser.ts'
import { folderOf } from '../support/folder-of.ts'
import { freePort } from '../support/free-port.ts'
import { formOf, png } from '../support/pictures.ts'
import { ask, call, type Json, type Service, signUp, startService } from '../support/service.ts'

const LIMIT_MS = 240_000
const TOKEN = 'the-token-of-a-viewer'

/** An add-on that takes whatever it can reach of its viewer, and tells who frames it. */
const HOSTILE = `
  const got = { origin: self.origin }
  const take = (name, what) => { try { got[name] = what() } catch (error) { got[name] = 'refused: ' + error.name } }
  take('own', () => localStorage.getItem('token'))
  take('parent', () => parent.localStorage.getItem('token'))
  take('document', () => parent.document.title)
  take('cookie', () => document.cookie)
  fetch('/api/v3/users', { credentials: 'include' })
    .then((answer) => { got.users = answer.status }, (error) => { got.users = 'refused: ' + error.name })
    .finally(() => parent.postMessage(got, '*'))`

const uploadHostile = async (service: Service, token: string): Promise<Json> => {
  const form = new FormData()
  form.append('name', 'Hostile')
  form.append('files', new File([HOSTILE], 'main.js'))
  form.append(
    'icon',
    new File(['<svg xmlns="http://www.w3.org/2000/svg"><script>parent.stolen = 1</script></svg>'], 'i.svg'),
  )
  return (await ask(service, 'POST', '/addon', { token, ...(await formOf(form)) })).data
}

const openPage = async (t: Test, url: string): Promise<Page> => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, timeout: LIMIT_MS })
  t.teardown(() => browser.close())
  const page = await (await browser.newContext()).newPage()
  await page.goto(url, { timeout: LIMIT_MS })
  await page.evaluate(`localStorage.setItem('token', '${TOKEN}')`)
  return page
}

/** What the add-on got, framed by this page. */
const framed = (page: Page, url: string): Promise<Json> =>
  page.evaluate(
    `new Promise((done, failed) => {
      addEventListener('message', ({ data }) => done(data), { once: true })
      const frame = document.createElement('iframe')
      frame.src = ${JSON.stringify(url)}
      document.body.append(frame)
      setTimeout(() => failed(new Error('the add-on did not run')), 60000)
    })`,
  )

test('an add-on never acts with the token of its viewer', { skip, timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const { files, frameUrl } = await uploadHostile(service, token)
  const page = await openPage(t, `${service.url}/openapi.json`)
  t.match(
    await framed(page, frameUrl),
    {
      origin: 'null',
      own: /^refused/,
      parent: /^refused/,
      document: /^refused/,
      cookie: /^refused/,
      users: /^refused|401/,
    },
    'in its own document it has no origin, and nothing of the page around it',
  )
  const opened = await page.context().newPage()
  await opened.goto(service.url + frameUrl, { timeout: LIMIT_MS })
  t.equal(await opened.evaluate('self.origin'), 'null', 'opened by itself, too')
  const included = await page.evaluate(
    `new Promise((done) => {
      const script = document.createElement('script')
      script.src = ${JSON.stringify(files[0].path)}
      script.onload = () => done('it ran')
      script.onerror = () => done('refused')
      document.head.append(script)
    })`,
  )
  t.equal(included, 'refused', 'a page of the service cannot even be made to run it')
  const head = await call(service, 'GET', files[0].path.slice('/api/v3'.length))
  t.match(head.headers, { 'x-content-type-options': 'nosniff', 'cache-control': /immutable/ })
  const logo = { token, body: png(), headers: { 'content-type': 'image/png' } }
  const path = (await ask(service, 'PUT', '/organization/logo', logo)).data.logo
  t.match((await call(service, 'GET', path.slice('/api/v3'.length))).headers, {
    'x-content-type-options': 'nosniff',
    'content-type': 'image/png',
  })
})

test('at an origin of their own add-ons run, and nothing else answers', { skip, timeout: 900_000 }, async (t) => {
  const free = await freePort()
  const origin = `http://localhost:${free}`
  const service = await startService(folderOf(t), ['--addon-origin', origin], free)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const { frameUrl, files } = await uploadHostile(service, token)
  t.ok(frameUrl.startsWith(`${origin}/api/v3/addon/`))
  const page = await openPage(t, `${service.url}/openapi.json`)
  const got = await framed(page, frameUrl)
  t.match(got, { origin, parent: /^refused/, document: /^refused/, cookie: '', users: /^refused/ })
  t.not(got.own, TOKEN)
  for (const path of ['/', '/api/v3/permissions', '/openapi.json', '/readyz', '/web/account.js'])
    t.equal((await call({ url: origin }, 'GET', `/${path}`, { token })).status, 404, `${path} is not there`)
  t.equal((await call({ url: origin }, 'GET', files[0].path.slice('/api/v3'.length))).status, 200)
})
