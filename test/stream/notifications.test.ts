import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openChat } from '../support/chat-receiver.ts'
import { folderOf } from '../support/folder-of.ts'
import { atRest } from '../support/lived-in.ts'
import { openSocket } from '../support/open-socket.ts'
import { mailsIn } from '../support/read-mail.ts'
import { ask, call, type Json, samplesMade, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Correct-horse-9-battery'
const FLAGS = ['--webhook-schedule', '20ms,20ms,20ms']

const opened = async (t: Test) => {
  const folder = folderOf(t)
  const state = { folder, service: await startService(folder, FLAGS) }
  t.teardown(() => state.service.kill())
  return state
}

type State = Awaited<ReturnType<typeof opened>>

/** An organization of its own. */
const openOffice = async (state: State) => {
  const { folder } = state
  const { token, hubId, email } = await signUp(state.service)
  await samplesMade(state.service, token)
  const send = async (method: string, path: string, body?: Json, by = token): Promise<Json> =>
    (await ask(state.service, method, path, { token: by, body })).data
  const person = async (name: string, role: string, more: object = {}) => {
    const roleId =
      role === ''
        ? (await send('POST', '/role', { name, ...more }))._id
        : (await send('GET', `/roles?key=${role}`))[0]._id
    const address = `${name}.${email}`
    const { _id } = await send('POST', '/user', { name, email: address, password: PASSWORD, roleId, hubId: [hubId] })
    const login = await ask(state.service, 'POST', '/auth/login', { body: { email: address, password: PASSWORD } })
    return { id: _id as string, token: login.token as string, email: address }
  }
  const ada = await person('ada', 'fieldUser')
  const userId = (await send('GET', '/user'))._id as string
  const [flow] = await send('GET', '/flows?key=delivery')
  const assigneeIds = [ada.id]
  const task = (title: string, more: object = {}) =>
    send('POST', '/task', { flowId: flow._id, title, hubId, assigneeIds, ...more })
  const automate = (details: Json, title: string, by = token): Promise<Json> =>
    send('POST', '/automation', bodyOf(details, title), by)
  const runsOf = (automationId: string): Promise<Json[]> => send('GET', `/automation-log?automationId=${automationId}`)
  const ended = async (automationId: string, count = 1): Promise<Json[]> => {
    let runs: Json[] = []
    await until(`${count} runs to end`, async () => {
      runs = await runsOf(automationId)
      return runs.length >= count && runs.every(({ status }) => status !== 'pending')
    })
    // Lists of what a run told follow it.
    await atRest(state.service)
    return runs
  }
  const restart = async (): Promise<void> => {
    await state.service.kill()
    state.service = await startService(folder, FLAGS)
  }
  const mails = () => mailsIn(join(folder, 'mail'))
  const told = async (by = ada.token): Promise<Json[]> => send('GET', '/notifications', undefined, by)
  return { token, userId, hubId, ada, person, send, task, automate, runsOf, ended, restart, mails, told }
}

const bodyOf = (automationDetails: Json, title = 'T'): Json => ({
  name: 'Tell <them>',
  event: 'onTaskCreated',
  automationType: 'notification',
  automationDetails,
  rules: { fields: { 'task.title': { pattern: `^${title}` } } },
})

test('people are told in the application, by mail and in chats, each once, with values that do no harm', {
  timeout: 900_000,
}, async (t) => {
  const state = await opened(t)
  const { ada, userId, send, task, automate, ended, restart, mails, told } = await openOffice(state)
  const chat = await openChat(t, (path, n) => ({ status: path === '/hooks/secret-b' && n === 0 ? 500 : 200 }))
  const live = await openSocket(state.service, 'live', ada.token)
  live.send({ type: 'subscribe', id: 'n', channels: ['notification'] })
  await live.heard(({ type }) => type === 'snapshot')
  const text = 'To {{task.address}}: {{{task.description}}}'
  const inApp = await automate({ channel: 'inApp', to: [ada.id, userId], subject: '{{task.title}}', text }, 'T')
  const mail = await automate(
    { channel: 'email', to: [ada.id, 'yard@partner.example'], subject: 'New: {{task.title}}', text },
    'T',
  )
  const urls = [chat.url('/hooks/secret-a'), chat.url('/hooks/secret-b')]
  const chats = await automate({ channel: 'chat', to: urls, subject: '{{task.title}}', text }, 'T')
  const nasty = '<b>@all</b> [x](http://evil.example) *now*'
  const made = await task('T 1', { address: 'Wolska 1', description: nasty })

  t.match(await ended(inApp._id), [{ status: 'succeeded', taskId: made._id }])
  t.match(await told(), [
    { subject: 'T 1', text: `To Wolska 1: ${nasty}`, isRead: false, about: { type: 'task', id: made._id } },
  ])
  t.equal((await told(undefined)).length, 1)
  const event = await live.heard(({ type }) => type === 'event')
  t.same(event.event, (await told())[0])
  live.close()

  t.match(await ended(mail._id), [{ status: 'succeeded' }])
  const sent = mails().filter(({ headers }) => headers.subject === 'New: T 1')
  t.same(sent.map(({ headers }) => headers.to).sort(), [ada.email, 'yard@partner.example'].sort())
  t.match(sent[0].text, `To Wolska 1: ${nasty}`)
  t.match(sent[0].html, '&lt;b&gt;@all&lt;/b&gt;')
  t.notMatch(sent[0].html, '<b>')
  t.match(sent[0].text, /Test \d+ · Tell <them>/, 'it says on whose behalf it comes')

  const [run] = await ended(chats._id)
  t.match(run, {
    status: 'succeeded',
    attempts: [{ statusCode: 500, error: '1 of 2 recipients: answered 500' }, { statusCode: 200 }],
  })
  t.same(chat.posts.map(({ path }) => path).sort(), ['/hooks/secret-a', '/hooks/secret-b', '/hooks/secret-b'])
  t.same(new Set(chat.posts.map(({ body }) => JSON.stringify(body))).size, 1, 'the same message again')
  t.equal(
    chat.posts[0].body.text,
    '**T 1**\nTo Wolska 1: &lt;b&gt;@\u200ball&lt;/b&gt; \\[x\\]\\(http://evil.example\\) \\*now\\*',
  )

  await task('T 2')
  await restart()
  await Promise.all([ended(inApp._id, 2), ended(mail._id, 2), ended(chats._id, 2)])
  t.same(
    (await told()).map(({ subject }) => subject),
    ['T 2', 'T 1'],
    'once, through a kill',
  )
  const ids = mails()
    .filter(({ headers }) => headers.subject === 'New: T 2')
    .map(({ headers }) => headers['message-id'])
  t.equal(new Set(ids).size, 2, 'a mail that is sent again has the same id')

  const shown = await send('GET', `/automation/${chats._id}`)
  const masked = `${new URL(urls[0]).origin}/***`
  t.same(shown.automationDetails.to, [masked, masked])
  const everywhere = JSON.stringify([
    shown,
    await send('GET', '/automations'),
    await send('GET', '/audit-log?noun=automation&limit=100'),
    await send('POST', `/automation/${chats._id}/test`),
    await send('GET', `/automation-log?automationId=${chats._id}`),
    state.service.lines,
  ])
  t.notMatch(everywhere, /secret-[ab]/, 'whoever knows the url of a chat may write to it: it is told nowhere')
  await send('PUT', `/automation/${chats._id}`, shown)
  await task('T 3')
  await ended(chats._id, 3)
  // What was sent right before the kill may come again.
  const posts = chat.posts.filter(({ path, body }) => path === '/hooks/secret-a' && body.text.startsWith('**T 3**'))
  t.equal(posts.length, 1, 'what was read can be written back')
  t.match(await send('POST', `/automation/${chats._id}/test`), {
    isSent: false,
    requests: [{ url: masked, body: { text: /Sample task/ } }, { url: masked }],
  })
  t.match(await send('POST', `/automation/${mail._id}/test`), { isSent: false, to: [ada.id, 'yard@partner.example'] })
})

test('what bounds notifications', { timeout: 900_000 }, async (t) => {
  const state = await opened(t)
  await t.test('a chat that is gone, or asks for time', async (t) => chatsThatRefuse(t, state))
  await t.test('what their editor may not see', async (t) => whatIsHidden(t, state))
  await t.test('the people concerned', async (t) => whoIsConcerned(t, state))
  await t.test('what they cannot be is refused at once', async (t) => whatIsRefused(t, state))
})

const chatsThatRefuse = async (t: Test, state: State): Promise<void> => {
  const { send, task, automate, ended, runsOf } = await openOffice(state)
  const chat = await openChat(t, (path) =>
    path === '/gone' ? { status: 410 } : { status: 429, headers: { 'retry-after': '3600' } },
  )
  const gone = await automate({ channel: 'chat', to: chat.url('/gone'), text: 'x' }, 'T')
  const busy = await automate({ channel: 'chat', to: chat.url('/busy'), text: 'x' }, 'T')
  await task('T')
  t.match(await ended(gone._id), [{ status: 'dead', attempts: [{ statusCode: 410 }] }])
  await until('it to be deactivated', async () => (await send('GET', `/automation/${gone._id}`)).isActive === false)
  t.match(await send('GET', `/automation/${gone._id}`), { notice: { reason: 'gone' } })
  await until('an attempt', async () => (await runsOf(busy._id))[0]?.attempts.length === 1)
  const [{ nextAttemptAt, attempts }] = await runsOf(busy._id)
  t.ok(Date.parse(nextAttemptAt) - Date.parse(attempts[0].at) >= 3_600_000)
}

/** Nobody has others told what they do not see, nor those whom they do not see. */
const whatIsHidden = async (t: Test, state: State): Promise<void> => {
  const { ada, person, send, task, automate, ended, told } = await openOffice(state)
  const [{ permissions }] = await send('GET', '/roles?key=admin')
  const type = await send('POST', '/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'debt', type: 'number' },
    ],
  })
  const hidden = [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['debt'] }]
  const clerk = await person('clerk', '', { permissions, permissionDetails: hidden })
  const blind = await person('blind', '', { permissions: permissions.filter((one: string) => one !== 'view/user') })
  const text = 'Owes {{record.values.debt}} {{#record.values}}({{debt}}){{/record.values}} {{record}}'
  const body = {
    ...bodyOf({ channel: 'inApp', to: ada.id, text }),
    event: 'onDataSourceCreated',
    rules: { fields: {} },
  }
  const records = await send('POST', '/automation', body, clerk.token)
  await send('POST', '/data', { dataTypeId: type._id, values: { number: 'C-1', debt: 987654 } })
  t.match(await ended(records._id), [{ status: 'succeeded' }])
  t.match((await told())[0].text, /^Owes .*C-1/)
  t.notMatch((await told())[0].text, /987654/)

  const refused = (details: Json, by: string): Promise<Json> =>
    call(state.service, 'POST', '/automation', { token: by, body: bodyOf(details) })
  for (const channel of ['inApp', 'email'])
    t.match(
      await refused({ channel, to: [blind.id, ada.id], text: 'x' }, blind.token),
      { status: 400, json: { errors: [{ path: '/automationDetails/to/1' }] } },
      `${channel}: of users whom one does not see`,
    )
  const own = await automate({ channel: 'inApp', to: blind.id, text: 'x' }, 'Own', blind.token)
  await task('Own')
  t.match(await ended(own._id), [{ status: 'succeeded' }], 'oneself needs no permission')

  const later = await automate({ channel: 'inApp', to: ada.id, text: 'x' }, 'Later', clerk.token)
  const role = (await send('GET', `/users?q=clerk`))[0].roleId
  await send('PATCH', `/role/${role}`, { permissions: permissions.filter((one: string) => one !== 'view/user') })
  await task('Later')
  t.match(await ended(later._id), [{ status: 'skipped', reason: 'hidden' }], 'looked at again at each attempt')

  const bob = await person('bob', 'fieldUser')
  const gone = await automate({ channel: 'email', to: bob.id, text: 'x' }, 'Gone')
  await send('PATCH', `/user/${bob.id}`, { status: 'disabled' })
  await task('Gone')
  t.match(await ended(gone._id), [{ status: 'dead', attempts: [{ error: 'the user is not active' }] }])
}

/** Those whom the event names, a role, and an address in a component; nobody who may not see the task. */
const whoIsConcerned = async (t: Test, state: State): Promise<void> => {
  const { ada, userId, person, send, task, automate, ended, mails, told } = await openOffice(state)
  const bob = await person('bob', 'fieldUser')
  const [{ _id: drivers }] = await send('GET', '/roles?key=fieldUser')
  const flow = await send('POST', '/flow', {
    name: 'Parcel',
    steps: [{ id: 's', name: 'S', components: [{ id: 'mail', type: 'text', label: 'Mail' }] }],
  })
  const text = '{{task.title}}'
  const inApp = await automate(
    { channel: 'inApp', to: [{ ref: 'task.createdBy.id' }, { roleId: drivers.toUpperCase() }, bob.id], text },
    'Mine',
  )
  t.same(inApp.automationDetails.to, [{ ref: 'task.createdBy.id' }, { roleId: drivers }, bob.id])
  const to = [{ ref: 'task.components.mail' }, { ref: 'task.assigneeIds' }]
  const mail = await automate({ channel: 'email', to, subject: text, text }, 'Mine')
  const arabic = { language: 'ar' }
  await send('PATCH', '/user', arabic, ada.token)
  await task('Mine', { flowId: flow._id, components: { mail: 'customer@shop.example' } })
  t.match(await ended(inApp._id), [{ status: 'succeeded' }])
  t.equal((await told()).length, 1, 'who has the task')
  t.equal((await told(undefined)).length, 1, 'who made it')
  t.same(await told(bob.token), [], 'bob does not see it')
  t.match(await ended(mail._id), [{ status: 'succeeded' }])
  const sent = mails().filter(({ headers }) => headers.subject === 'Mine')
  t.same(sent.map(({ headers }) => headers.to).sort(), [ada.email, 'customer@shop.example'].sort())
  t.match(sent.find(({ headers }) => headers.to === ada.email)?.html, '<html lang="ar" dir="rtl">')
  t.match(sent.find(({ headers }) => headers.to !== ada.email)?.html, '<html lang="en" dir="ltr">')
  await task('Mine 2', { flowId: flow._id, components: { mail: 'root@printer.local' }, assigneeIds: [] })
  const [run] = await ended(mail._id, 2)
  const error = 'task.components.mail is not a user or a public e-mail address'
  t.match(run, { status: 'dead', attempts: [{ error }] })

  // A link that the service makes: the same in all mails of a run, and no text of others in chats.
  const link = 'Follow: {{task.followUrl}}{{#task}} {{followUrl}}{{/task}}'
  const linked = await automate(
    { channel: 'email', to: [{ ref: 'task.components.mail' }, ada.id], text: link },
    'Linked',
  )
  const address = `${state.service.url}/follow/`
  t.match((await send('POST', `/automation/${linked._id}/test`)).text, `Follow: ${address}sample ${address}sample`)
  const made = await task('Linked', { flowId: flow._id, components: { mail: 'linked@shop.example' } })
  t.match(await ended(linked._id), [{ status: 'succeeded' }])
  const links = mails().flatMap(({ text }) => text.match(/http\S+\/follow\/[\w-]{43}/g) ?? [])
  t.equal(links.length, 4)
  t.equal(new Set(links).size, 1, 'each attempt and each mail has the same')
  const page = await (await fetch(links[0])).text()
  t.match(page, 'Linked')
  t.match(await send('GET', `/shares?taskId=${made._id}`), [{ taskId: made._id, showTrail: false }])
  const chat = await openChat(t, () => ({ status: 200 }))
  const said = await automate(
    { channel: 'chat', to: chat.url('/x'), text: '{{task.followUrl}} {{task.title}}' },
    'In_chat',
  )
  await task('In_chat')
  await ended(said._id)
  t.match(chat.posts[0].body.text, /^http\S+\/follow\/[\w-]{43} In\\_chat$/)

  const refused = async (details: Json, path: string): Promise<void> => {
    const body = bodyOf({ channel: 'email', text: 'x', ...details })
    const answer = await call(state.service, 'POST', '/automation', { token: bob.token, body })
    t.equal(answer.status, 403, 'who may not edit automations')
    const { status, json } = await refusedBy(body)
    t.match({ status, json }, { status: 400, json: { errors: [{ path: `/automationDetails${path}` }] } }, path)
  }
  const [{ permissions }] = await send('GET', '/roles?key=admin')
  const blind = await person('unseeing', '', { permissions: permissions.filter((one: string) => one !== 'view/user') })
  const refusedBy = (body: Json) => call(state.service, 'POST', '/automation', { token: blind.token, body })
  await refused({ to: { roleId: drivers } }, '/to')
  await refused({ to: { roleId: userId } }, '/to')
  await refused({ to: { ref: 'task.nothing' } }, '/to')
  await refused({ to: { ref: 'record.values.mail' } }, '/to')
  await refused({ to: [{ ref: 'task.__proto__' }] }, '/to/0')
  await refused({ to: [{ ref: 'task.assigneeIds', roleId: drivers }] }, '/to/0')
  await refused({ to: [{ ref: 'old.task.assigneeIds' }] }, '/to/0')
  await refused({ to: [{ ref: 'task.assigneeIds' }, { ref: 'task.assigneeIds' }] }, '/to')
  await refused({ channel: 'chat', to: { ref: 'task.components.mail' } }, '/to')
  await refused({ to: ada.id, text: '{{old.task.followUrl}}' }, '/text')
  const noDispatch = permissions.filter((one: string) => one !== 'dispatch/task')
  const clerk = await person('nodispatch', '', { permissions: noDispatch })
  const body = bodyOf({ channel: 'email', to: ada.id, text: link })
  t.match(await call(state.service, 'POST', '/automation', { token: clerk.token, body }), {
    status: 400,
    json: { errors: [{ path: '/automationDetails/text', message: /dispatch\/task/ }] },
  })
}

const whatIsRefused = async (t: Test, state: State): Promise<void> => {
  const { ada, token } = await openOffice(state)
  const outsider = await signUp(state.service, 'Outsider')
  const stranger = (await ask(state.service, 'GET', '/user', { token: outsider.token })).data._id
  const refused = async (details: Json, path: string): Promise<void> => {
    const answer = await call(state.service, 'POST', '/automation', { token, body: bodyOf(details) })
    t.match(answer, { status: 400, json: { code: 'invalid', errors: [{ path: `/automationDetails${path}` }] } }, path)
  }
  const inApp = { channel: 'inApp', to: ada.id, text: 'x' }
  const chat = { channel: 'chat', text: 'x' }
  await refused({ ...inApp, channel: 'sms' }, '/channel')
  await refused({ channel: 'inApp', to: ada.id }, '/text')
  await refused({ ...inApp, more: 1 }, '/more')
  await refused({ ...inApp, to: [] }, '/to')
  await refused({ ...inApp, to: [ada.id, ada.id] }, '/to')
  await refused({ ...inApp, to: Array.from({ length: 201 }, (_, i) => `x${i}`) }, '/to')
  await refused({ ...inApp, to: [ada.id, stranger] }, '/to/1')
  await refused({ ...inApp, to: 'somebody@example.com' }, '/to')
  await refused({ ...inApp, channel: 'email', to: 'a@b.example, c@d.example' }, '/to')
  for (const to of [
    'nobody',
    'a@localhost',
    'a@host',
    'a@[127.0.0.1]',
    'a@db.internal',
    'a\u202e@b.example',
    'a\u0007@b.example',
  ])
    await refused({ ...inApp, channel: 'email', to }, '/to')
  for (const url of [
    'ftp://example.com/x',
    'http://169.254.169.254/x',
    'http://[::1]/x',
    'nothing',
    'https://a.example/***',
    7,
  ])
    await refused({ ...chat, to: url }, '/to')
  await refused({ ...inApp, text: 'x'.repeat(10_001) }, '/text')
  await refused({ ...inApp, text: '{{#task}}' }, '/text')
  await refused({ ...inApp, text: '{{> partial}}' }, '/text')
  await refused({ ...inApp, text: '{{record.values.x}}' }, '/text')
  await refused({ ...inApp, text: ' ' }, '/text')
  await refused({ ...inApp, text: '\u202eabc' }, '/text')
  await refused({ ...inApp, subject: 'a\nb' }, '/subject')
  await refused({ ...inApp, subject: 'x'.repeat(501) }, '/subject')
}
