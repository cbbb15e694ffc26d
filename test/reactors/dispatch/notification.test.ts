import { type Test, test } from 'tap'
import { ACCESS_IDENTITIES, ACCESS_ROLES, ACCESS_USERS } from '../../../src/features/identity/views.ts'
import type { HttpCaller, HttpOutcome } from '../../../src/engines/http-caller.ts'
import type { Mail, MailOutcome } from '../../../src/engines/mailer.ts'
import { notificationStream } from '../../../src/features/notifications/events.ts'
import type { AutomationRow } from '../../../src/features/automations/views.ts'
import { NO_ORGANIZATION } from '../../../src/kernel/table.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import type { Work } from '../../../src/reactors/dispatch/actions/action.ts'
import { chatBody, chatEscape, chatFormOf, isRefusedBy } from '../../../src/reactors/dispatch/actions/chat-message.ts'
import { notificationAction } from '../../../src/reactors/dispatch/actions/notification.ts'
import { callerWith } from '../../support/callers.ts'
import { openServices } from '../../support/open-services.ts'
import { folderOf } from '../../support/folder-of.ts'

const ORGANIZATION = idFrom('organization', 'one')
const USER = idFrom('user', 'one')

const open = async (t: Test) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const users = { name: 'users', version: 1, equality: ['roleId', 'status'] }
  for (const table of [ACCESS_USERS, ACCESS_ROLES, ACCESS_IDENTITIES, users, { name: 'organizations', version: 1 }])
    await services.tables.declare(table)
  const user = { identityId: 'i', email: 'typed@example.com', status: 'active', roleId: 'r', hubIds: [], teamIds: [] }
  const put = (table: string, scope: string, id: string, row: object) =>
    services.tables.commit([{ table, scope, id, row: { ...row } }])
  await put(ACCESS_USERS.name, ORGANIZATION, USER, user)
  const mails: Mail[] = []
  const calls: string[] = []
  const says = {
    mail: (_mail: Mail): MailOutcome => ({ kind: 'sent' }),
    chat: (_url: string): HttpOutcome => ({ kind: 'answered', statusCode: 200, answer: 'ok' }),
  }
  const mailer = {
    send: async (mail: Mail) => {
      mails.push(mail)
      return says.mail(mail)
    },
    check: async () => undefined,
    close: async () => undefined,
  }
  const caller: HttpCaller = {
    refusal: () => undefined,
    fetch: () => Promise.reject(new Error('nothing is fetched here')),
    post: async ({ url }) => {
      calls.push(url)
      return says.chat(url)
    },
    close: async () => undefined,
  }
  const action = notificationAction({ ...services, mailer, caller, publicUrl: 'https://map.example' })
  const workOf = (run: string, details: object, data: object = {}): Work => ({
    automation: { _id: idFrom('automation', 'one'), organizationId: ORGANIZATION, name: 'Tell' } as AutomationRow,
    details: { text: 'x', ...details },
    run: {
      runId: idFrom('run', run),
      sequence: 1,
      owedAt: 0,
      trigger: {
        ...{ sourceId: 's', event: 'onTaskCreated', organizationId: ORGANIZATION, at: 0 },
        subject: { type: 'task', id: idFrom('task', 'one') },
      },
    },
    isFirst: false,
    editor: callerWith(['view/user'], { organizationId: ORGANIZATION }),
    data: { task: {}, ...data },
    isSeenBy: () => true,
  })
  return { ...services, put, mails, calls, says, action, workOf }
}

test('of several recipients only those who could not be told yet are tried again, under the same id', async (t) => {
  const { action, workOf, mails, says } = await open(t)
  const work = workOf('one', { channel: 'email', to: ['a@x.example', 'b@x.example', 'c@x.example'] })
  says.mail = ({ to }) => {
    if (to.startsWith('a')) return { kind: 'sent' }
    return to.startsWith('b') ? { kind: 'failed', error: 'busy' } : { kind: 'refused', error: 'no such box' }
  }
  t.match(await action.attempt(work), { kind: 'failed', error: '1 of 3 recipients: busy', ends: undefined })
  t.equal(mails.length, 3)
  says.mail = () => ({ kind: 'sent' })
  t.match(await action.attempt(work), { kind: 'failed', error: '1 of 3 recipients: no such box', ends: 'run' })
  t.same(
    mails.slice(3).map(({ to }) => to),
    ['b@x.example'],
  )
  t.equal(mails[3].id, mails[1].id)
  t.equal(new Set(mails.map(({ id }) => id)).size, 3)
  t.match(await action.attempt(work), { kind: 'failed', ends: 'run' }, 'also when it is asked for once more')
  t.equal(mails.length, 4)
})

test('whoever is no active user any more is passed over, and nobody left ends the run', async (t) => {
  const { action, workOf } = await open(t)
  const gone = idFrom('user', 'gone')
  t.match(await action.attempt(workOf('some', { channel: 'inApp', to: [gone, USER] })), { kind: 'done' })
  t.match(await action.attempt(workOf('some', { channel: 'inApp', to: [gone, USER] })), { kind: 'done' }, 'once more')
  t.match(await action.attempt(workOf('none', { channel: 'inApp', to: [gone, idFrom('user', 'too')] })), {
    kind: 'failed',
    error: '2 of 2 recipients: the user is not active',
    ends: 'run',
  })
})

test('addresses that no user has confirmed get so many mails a day, confirmed ones more', async (t) => {
  const { action, workOf, mails, put, clock, tables, keyring } = await open(t)
  const foreign = (n: number) => action.attempt(workOf(`f${n}`, { channel: 'email', to: `p${n % 5}@x.example` }))
  const key = `automation-mail-${keyring.hmac('mail-limits', `foreign:${ORGANIZATION}`).toString('base64url')}`
  for (let n = 0; n < 1_990; n++) await tables.increment(NO_ORGANIZATION, key, 86_400_000)
  let sent = 0
  for (let n = 0; n < 15; n++) sent += (await foreign(n)).kind === 'done' ? 1 : 0
  t.equal(sent, 10)
  const over = await foreign(500)
  t.match(over, { kind: 'failed', error: /over the limit: 2000 mails/ })
  t.ok(over.kind === 'failed' && (over.retryAfterMs ?? 0) > 80_000_000, 'until the next day')
  const toUser = () => action.attempt(workOf('u', { channel: 'email', to: USER }))
  t.match(await toUser(), { kind: 'failed' }, 'what somebody typed for a user proves nothing')
  await put(ACCESS_IDENTITIES.name, NO_ORGANIZATION, 'i', { verifiedEmail: 'mine@example.com' })
  t.match(await toUser(), { kind: 'done' })
  t.equal(mails.at(-1)?.to, 'mine@example.com')
  clock.advance(86_400_001)
  t.match(await foreign(501), { kind: 'done' })
})

test('an organization mails one address 50 times a day, which leaves the alerts of others as they are', async (t) => {
  const { action, workOf, mails } = await open(t)
  for (let n = 0; n < 55; n++) await action.attempt(workOf(`f${n}`, { channel: 'email', to: 'Only@x.example' }))
  t.equal(mails.length, 50)
  const others = workOf('alert', { channel: 'email', to: 'only@x.example' })
  const organizationId = idFrom('organization', 'two')
  const alert = { ...others, automation: { ...others.automation, organizationId } }
  t.match(await action.attempt(alert), { kind: 'done' })
  t.match(mails.at(-1), { to: 'only@x.example' })
})

test('who does not see users any more has no others told', async (t) => {
  const { action, workOf } = await open(t)
  const work = { ...workOf('one', { channel: 'inApp', to: USER }), editor: callerWith([]) }
  t.match(await action.attempt(work), { kind: 'hidden' })
  t.match(await action.attempt({ ...work, editor: callerWith([], { userId: USER }) }), { kind: 'done' })
})

test('a hundred things told to one user at once are all there, with few appends', async (t) => {
  const { action, workOf, log } = await open(t)
  let appends = 0
  const append = log.append.bind(log)
  log.append = (...appended) => {
    appends++
    return append(...appended)
  }
  const all = Array.from({ length: 100 }, (_, n) => action.attempt(workOf(`n${n}`, { channel: 'inApp', to: USER })))
  t.same([...new Set((await Promise.all(all)).map(({ kind }) => kind))], ['done'])
  t.equal((await log.read(notificationStream(USER), 0, 200)).length, 100)
  t.ok(appends <= 3, `${appends} appends`)
  const again = await Promise.all(
    Array.from({ length: 3 }, () => action.attempt(workOf('n5', { channel: 'inApp', to: USER }))),
  )
  t.match(again, [{ kind: 'done' }, { kind: 'done' }, { kind: 'done' }])
  t.equal((await log.read(notificationStream(USER), 0, 200)).length, 100, 'once each')
})

test('long texts for one user are no more together than an append may have', async (t) => {
  const { action, workOf, log } = await open(t)
  const text = '\ud800'.repeat(10_000)
  const tell = (n: number) => action.attempt(workOf(`long${n}`, { channel: 'inApp', to: USER, text }))
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => tell(n)))
  t.ok(all.every(({ kind }) => kind === 'done'))
  t.equal((await log.read(notificationStream(USER), 0, 200)).length, 40)
})

test('a run waits for the table of tasks where its text has a link to follow one', async (t) => {
  const { action, workOf } = await open(t)
  const { trigger } = workOf('one', {}).run
  const waits = (details: object) => action.readsLists({ channel: 'inApp', to: USER, text: 'x', ...details }, trigger)
  t.notOk(waits({ text: 'followUrl of {{task.title}}' }))
  for (const link of ['{{task.followUrl}}', '{{{ task.followUrl }}}', '{{#task}}{{followUrl}}{{/task}}']) {
    t.ok(waits({ text: `Here: ${link}` }), link)
    t.ok(waits({ subject: link }), link)
  }
})

test('chats answer for themselves', async (t) => {
  const { action, workOf, says } = await open(t)
  const [one, other] = ['https://a.example/1', 'https://b.example/2']
  const told = (run: string, to: unknown) => action.attempt(workOf(run, { channel: 'chat', to }))
  says.chat = () => ({ kind: 'answered', statusCode: 429, retryAfter: '60', answer: 'slow down' })
  t.match(await told('1', one), { kind: 'failed', statusCode: 429, answer: 'slow down', retryAfterMs: 60_000 })
  says.chat = () => ({ kind: 'failed', error: 'timed out' })
  t.match(await told('2', one), { kind: 'failed', error: 'timed out', ends: undefined })
  says.chat = () => ({ kind: 'answered', statusCode: 410, answer: '' })
  t.match(await told('3', one), { kind: 'failed', ends: 'automation' })
  says.chat = (url) => ({ kind: 'answered', statusCode: url === one ? 410 : 200, answer: '' })
  t.match(await told('4', [one, other]), { kind: 'failed', ends: 'run' }, 'one of two is gone')
})

test('each chat gets the form that it takes, with values that are plain text', (t) => {
  t.equal(chatFormOf('https://hooks.slack.com/services/T/B/x'), 'slack')
  t.equal(chatFormOf('https://evilslack.com/x'), 'mattermost')
  t.equal(chatFormOf('https://prod-1.westeurope.logic.azure.com:443/workflows/x'), 'teams')
  t.equal(chatFormOf('https://acme.webhook.office.com/webhookb2/x'), 'teams')
  t.equal(chatFormOf('https://chat.example.com/hooks/x'), 'mattermost')
  t.equal(chatEscape('slack')('<!channel> & <http://a|b>'), '&lt;!channel&gt; &amp; &lt;http://a|b&gt;')
  t.equal(chatEscape('mattermost')('@all [a](b) `c`'), '@\u200ball \\[a\\]\\(b\\) \\`c\\`')
  t.same(chatBody('slack', 'Late', 'x\ny'), { text: '*Late*\nx\ny' })
  t.same(chatBody('slack', undefined, 'x'), { text: 'x' })
  t.match(chatBody('teams', 'Late', 'x\n\n[y](z)'), {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          type: 'AdaptiveCard',
          body: ['Late', 'x', '[y](z)'].map((text) => ({
            type: 'RichTextBlock',
            inlines: [{ type: 'TextRun', text }],
          })),
        },
      },
    ],
  })
  t.ok(isRefusedBy('teams', 'Webhook message delivery failed with error: 429'))
  t.notOk(isRefusedBy('slack', 'Webhook message delivery failed'))
  t.end()
})

test('people of a role and of the event are told, each once, but for those who do not see it', async (t) => {
  const { action, workOf, put, mails } = await open(t)
  const people = ['ada', 'bob', 'cy', 'dora'].map((name) => ({ name, id: idFrom('user', name) }))
  for (const { name, id } of people) {
    const common = { email: `${name}@example.com`, status: 'active', roleId: 'drivers' }
    await put(ACCESS_USERS.name, ORGANIZATION, id, { ...common, identityId: name, hubIds: [], teamIds: [] })
    await put('users', ORGANIZATION, id, { ...common, _id: id })
  }
  await put('users', ORGANIZATION, idFrom('user', 'left'), { roleId: 'drivers', status: 'disabled' })
  const [ada, bob, cy, dora] = people.map(({ id }) => id)
  const to = [
    { ref: 'task.assigneeIds' },
    { roleId: 'drivers' },
    { ref: 'task.components.mail' },
    { ref: 'task.createdBy.id' },
    bob,
  ]
  const data = {
    task: {
      assigneeIds: [ada, ada.toUpperCase(), idFrom('user', 'nobody')],
      components: { mail: 'customer@shop.example' },
      createdBy: { type: 'user', id: dora },
    },
  }
  const work: Work = { ...workOf('people', { channel: 'email', to }, data), isSeenBy: ({ userId }) => userId !== cy }
  t.match(await action.attempt(work), { kind: 'done' })
  const expected = ['ada@example.com', 'bob@example.com', 'customer@shop.example', 'dora@example.com']
  t.same(mails.map((mail) => mail.to).sort(), expected)
  t.match(await action.attempt(work), { kind: 'done' })
  t.equal(mails.length, 4, 'each is told once')

  const blind = { ...work, editor: callerWith([], { organizationId: ORGANIZATION, userId: ada }) }
  t.match(await action.attempt(blind), { kind: 'hidden' }, 'who does not see users names no role')
  const own = { ...workOf('own', { channel: 'email', to: [to[0], to[2], to[3]] }, data), editor: blind.editor }
  t.match(await action.attempt(own), { kind: 'done' })
  t.same(
    mails
      .slice(4)
      .map((mail) => mail.to)
      .sort(),
    ['ada@example.com', 'customer@shop.example'],
  )
})

test('a ref to what is no address, or to very many, does no harm', async (t) => {
  const { action, workOf, put, mails } = await open(t)
  const sent = (run: string, mail: unknown) =>
    action.attempt(
      workOf(run, { channel: 'email', to: { ref: 'task.components.mail' } }, { task: { components: { mail } } }),
    )
  const bad = [
    'a@x.example\r\nBcc: b@x.example',
    'a@x.example\n',
    'a@localhost',
    'a@db.internal',
    'a@[127.0.0.1]',
    'a@x.example, b@x.example',
    'A <a@x.example>',
    '\u202ea@x.example',
    'a\u0000@x.example',
    'x'.repeat(1_000_000),
    7,
    { mail: 'a@x.example' },
  ]
  for (const [i, mail] of bad.entries())
    t.match(await sent(`bad${i}`, mail), {
      kind: 'failed',
      ends: 'run',
      error: 'task.components.mail is not a user or a public e-mail address',
    })
  t.equal(mails.length, 0)
  for (const [i, mail] of [undefined, null, '', []].entries())
    t.match(await sent(`none${i}`, mail), { kind: 'done', answer: 'Nobody is there to tell.' })

  const roleId = 'many'
  for (let n = 0; n < 230; n++) {
    const id = idFrom('user', roleId, n)
    const common = { email: `u${n}@example.com`, status: 'active', roleId }
    await put(ACCESS_USERS.name, ORGANIZATION, id, { ...common, identityId: 'i', hubIds: [], teamIds: [] })
    await put('users', ORGANIZATION, id, { ...common, _id: id })
  }
  await put(ACCESS_IDENTITIES.name, NO_ORGANIZATION, 'i', { verifiedEmail: 'mine@example.com' })
  const told = await action.attempt(workOf('many', { channel: 'email', to: { roleId } }))
  t.match(told, { kind: 'done', answer: 'Only the first 200 are told.' })
  t.equal(mails.length, 200)
  const million: string[] = new Array(1_000_000).fill(idFrom('user', roleId, 0))
  for (let n = 0; n < 230; n++) million[n] = idFrom('user', roleId, n)
  const users = workOf(
    'million',
    { channel: 'inApp', to: { ref: 'task.assigneeIds' } },
    { task: { assigneeIds: million } },
  )
  t.match(await action.attempt(users), { kind: 'done', answer: 'Only the first 200 are told.' })
})
