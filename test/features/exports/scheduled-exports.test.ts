import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { mailsIn } from '../../support/read-mail.ts'
import { ask, call, type Json, type Service, signUp, startService, until } from '../../support/service.ts'

const SECOND_MS = 1_000

/** A rule that is due on one second of each day. */
const dailyAt = (ms: number): string => {
  const at = new Date(ms)
  return `FREQ=DAILY;BYHOUR=${at.getUTCHours()};BYMINUTE=${at.getUTCMinutes()};BYSECOND=${at.getUTCSeconds()}`
}

/** Sets a schedule that is due in a few seconds; on a slow machine the first tries may come too late for their own due time. */
const dueSoon = async (service: Service, token: string, id: string, emails: string[]): Promise<Json> => {
  for (let ahead = 2; ; ahead *= 2) {
    const schedule = { rrule: dailyAt(Date.now() + ahead * SECOND_MS), timeZone: 'UTC', emails }
    const { data } = await ask(service, 'PATCH', `/export-config/${id}`, { token, body: { schedule } })
    if (Date.parse(data.nextAt) < Date.now() + 3_600_000) return data
  }
}

test('a config runs by its schedule, and mails a link to the file', { timeout: 600_000 }, async (t) => {
  const folder = folderOf(t)
  let service = await startService(folder)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const get = async (path: string): Promise<Json> => (await ask(service, 'GET', path, { token })).data
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'phone', type: 'text' },
  ]
  const { _id: dataTypeId } = await make('/data-type', { name: 'Customers', primaryKey: 'number', fields })
  await make('/data', { dataTypeId, values: { number: 'customer 007', phone: '=1' } })
  const config = { name: 'Every day', target: 'data', dataTypeId, fields: ['number'], format: 'csv' }
  const { _id: id } = await make('/export-config', config)
  const exports = async (): Promise<Json> =>
    (await get('/tasks/export-log')).filter((one: Json) => one.exportConfigId === id)
  const completed = async (count: number): Promise<Json> => {
    await until(`${count} exports`, async () => {
      const all = await exports()
      return all.length >= count && all.every(({ status }: Json) => status === 'completed')
    })
    return exports()
  }
  const mails = (): ReturnType<typeof mailsIn> =>
    mailsIn(join(folder, 'mail')).filter(({ headers }) => headers.subject.includes('Every day'))

  await t.test('what cannot be kept is refused, by the path', async (t) => {
    const repeat = { period: 'daily', at: '06:00' }
    const refused = async (schedule: object, path: string): Promise<void> => {
      const answer = await call(service, 'PATCH', `/export-config/${id}`, { token, body: { schedule } })
      t.match(answer, { status: 400, json: { errors: [{ path }] } }, path)
    }
    await refused({ timeZone: 'UTC' }, '/schedule/rrule')
    await refused({ timeZone: 'UTC', rrule: 'FREQ=DAILY', repeat }, '/schedule/rrule')
    await refused({ timeZone: 'UTC', rrule: 'FREQ=SECONDLY' }, '/schedule/rrule')
    await refused({ timeZone: 'Mars/Olympus', repeat }, '/schedule/timeZone')
    await refused({ timeZone: 'UTC', repeat, emails: ['nobody'] }, '/schedule/emails/0')
    await refused(
      { timeZone: 'UTC', repeat, emails: Array.from({ length: 21 }, (_, i) => `a${i}@example.com`) },
      '/schedule/emails',
    )
    t.equal((await get(`/export-config/${id}`)).nextAt, undefined)
  })

  await t.test('its export stands in the log, and each address gets the path of the file', async (t) => {
    const roleId = (await get('/roles?key=planner'))[0]._id
    await make('/user', { name: 'Ada', email: 'ada@example.com', password: 'Correct-horse-8-battery', roleId, hubId: [hubId], language: 'pl' }) // biome-ignore format: one thing
    const { nextAt } = await dueSoon(service, token, id, ['ada@example.com', 'bob@example.com'])
    const [row] = await completed(1)
    t.match(row, { kind: 'data', format: 'csv', rows: 1, status: 'completed' })
    await until('two mails', () => mails().length === 2)
    t.same(
      mails()
        .map(({ headers }) => headers.to)
        .sort(),
      ['ada@example.com', 'bob@example.com'],
    )
    const languages = mails().map(({ headers, html }) => [headers.to, /<html lang="(\w+)"/.exec(html)?.[1]])
    t.same(languages.sort(), [['ada@example.com', 'pl'], ['bob@example.com', 'en']], 'each in the language of the reader') // biome-ignore format: one thing
    const [{ text, html }] = mails()
    t.notMatch(text + html, 'customer 007', 'the file is not mailed')
    const link = /https?:\S+\/api\/v3\/export-file\/\S+/.exec(text)?.[0] as string
    const path = link.slice(link.indexOf('/api/v3/') + '/api/v3'.length)
    const file = await call(service, 'GET', path)
    t.same(parse(file.text), [['number'], ['customer 007']])
    t.equal((await call(service, 'GET', path.replace(/signature=./, 'signature=.'))).status, 404)
    const url = new URL(link)
    url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1))
    t.equal((await call(service, 'GET', url.pathname.replace('/api/v3', '') + url.search)).status, 404)
    const shown = await get(`/export-config/${id}`)
    t.ok(shown.nextAt > nextAt, 'the next one is later')
    t.equal(shown.notice, undefined)
  })

  await t.test(
    'what came due while nothing ran is one export, by the rights of whoever wrote the config',
    async (t) => {
      const { nextAt } = await dueSoon(service, token, id, [])
      await service.kill()
      await until('the due time', () => Date.now() > Date.parse(nextAt))
      service = await startService(folder)
      await completed(2)
      await until('the next time', async () => (await get(`/export-config/${id}`)).nextAt > nextAt)
      t.equal((await exports()).length, 2)
      t.equal(mails().length, 2, 'nobody else is mailed')
    },
  )

  await t.test('without a schedule nothing is due', async (t) => {
    const { data } = await ask(service, 'PUT', `/export-config/${id}`, { token, body: config })
    t.equal(data.nextAt, undefined)
    t.equal(data.schedule, undefined)
    t.equal(data.scheduledBy, undefined)
  })
})

test('whoever may not export sets no schedule', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const body = { name: 'Keeps configs', permissions: ['view/export-config', 'edit/export-config'] }
  const { data: role } = await ask(service, 'POST', '/role', { token, body })
  const [email, password] = [`s.${process.pid}@example.com`, 'Correct-horse-8-battery']
  const person = { name: 'S', email, password, roleId: role._id, hubId: [hubId] }
  await ask(service, 'POST', '/user', { token, body: person })
  const { token: theirs } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const config = { name: 'Tasks', target: 'task' }
  const schedule = { repeat: { period: 'daily', at: '06:00' }, timeZone: 'UTC' }
  t.match(await call(service, 'POST', '/export-config', { token: theirs, body: { ...config, schedule } }), {
    status: 403,
    json: { permissions: ['export/task', 'view/task'] },
  })
  t.equal((await call(service, 'POST', '/export-config', { token: theirs, body: config })).status, 201)
})

test('whoever may not see a column of a config sets no schedule of it', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const fields = ['number', 'price'].map((name) => ({ name, type: 'text' }))
  const { _id: dataTypeId } = await make('/data-type', { name: 'Parts', primaryKey: 'number', fields })
  const role = await make('/role', {
    name: 'Clerk',
    permissions: ['view/data', 'view/export-config', 'edit/export-config'],
    permissionDetails: [{ permissionName: 'view/data', dataTypeId, hiddenFields: ['price'] }],
  })
  const [email, password] = [`c.${process.pid}@example.com`, 'Correct-horse-8-battery']
  await make('/user', { name: 'C', email, password, roleId: role._id, hubId: [hubId] })
  const { token: theirs } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const schedule = { repeat: { period: 'daily', at: '06:00' }, timeZone: 'UTC' }
  const config = { name: 'Prices', target: 'data', dataTypeId, fields: ['price'], schedule }
  const { _id } = await make('/export-config', config)
  const amended = (body: object) => call(service, 'PATCH', `/export-config/${_id}`, { token: theirs, body })
  t.match(await amended({ schedule: { ...schedule, timeZone: 'Europe/Warsaw' } }), {
    status: 403,
    json: { fields: ['price'] },
  })
  t.equal((await amended({ schedule: null })).status, 200, 'but ends one')
})
