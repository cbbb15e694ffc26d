import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { Mail, Mailer, MailOutcome } from '../../../src/engines/mailer.ts'
import { openSmtpMailer } from '../../../src/engines/smtp-mailer/smtp-mailer.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { MAIL_RETRY_MS } from '../../../src/reactors/mail/mail-sender.ts'
import { type OwedMailRow, OWED_MAILS } from '../../../src/reactors/mail/owed-mails.ts'
import { MAIL_LANGUAGES, renderMail } from '../../../src/reactors/mail/render-mail.ts'
import { sendMails } from '../../../src/reactors/mail/send-mails.ts'
import type { MailKind } from '../../../src/reactors/mail/texts/mail-text.ts'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openIdentity } from '../../support/open-identity.ts'
import { readMail } from '../../support/read-mail.ts'
import { until } from '../../support/service.ts'
import { startSmtp } from '../../support/smtp.ts'

type World = Awaited<ReturnType<typeof openIdentity>>

/** A mailer that answers what it is told, and keeps what it was given. */
const scripted = (answer: () => MailOutcome) => {
  const mails: Mail[] = []
  const mailer: Mailer = {
    check: async () => undefined,
    send: async (mail) => {
      mails.push(mail)
      return answer()
    },
    close: async () => undefined,
  }
  return { mailer, mails }
}

const begin = (world: Omit<World, 'close'>, mailer: Mailer) =>
  sendMails({ ...world, mailer, publicUrl: 'https://map.example.com' })

const owedRows = async ({ tables }: Pick<World, 'tables'>): Promise<OwedMailRow[]> =>
  (await tables.find<OwedMailRow>(OWED_MAILS.name, '-', { limit: 100 })).rows.map(({ row }) => row)

const endsOf = async (world: World): Promise<object[]> => {
  const ends: object[] = []
  const end = new AbortController()
  for await (const { events, caughtUp } of world.log.follow({ prefixes: ['mail-'] }, undefined, end.signal)) {
    for (const { data } of events) ends.push(JSON.parse(Buffer.from(data).toString()))
    if (caughtUp) break
  }
  end.abort()
  return ends
}

test('a mail server that refuses for now is tried again, later and later, until it takes the mail', async (t) => {
  const world = await openIdentity(t)
  let isDown = true
  const { sources, port } = await startSmtp(t, {
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo: (_address, _session, callback) =>
      isDown ? callback(Object.assign(new Error('later'), { responseCode: 451 })) : callback(),
  })
  const url = `smtp://127.0.0.1:${port}`
  const mails = await begin(world, openSmtpMailer({ url, from: 'waymark@example.com', clock: systemClock }))
  t.teardown(() => mails.close())
  await world.signup({ email: 'ada@example.com' })
  for (const attempts of [1, 2, 3]) {
    await until('an attempt', async () => (await owedRows(world))[0]?.attempts === attempts)
    const [{ nextAt }] = await owedRows(world)
    t.equal(nextAt - world.clock.now(), MAIL_RETRY_MS[attempts - 1])
    if (attempts === 3) isDown = false
    await until('the sender to wait', () => world.clock.isAwaited(1_000))
    world.clock.advance(nextAt - world.clock.now())
  }
  await until('the mail', async () => (await owedRows(world)).length === 0)
  t.equal(sources.length, 1)
  t.match(readMail(sources[0]).text, 'https://map.example.com/verify-email?token=')
  t.match(await endsOf(world), [{ outcome: 'sent', attempts: 4 }])
  t.notMatch(JSON.stringify(world.lines), 'ada@example.com')
})

test('what is refused for good is not tried again, and no attempt follows the last', async (t) => {
  const world = await openIdentity(t)
  const refusing = scripted(() => ({ kind: 'refused', error: 'EENVELOPE RCPT TO 550' }))
  const first = await begin(world, refusing.mailer)
  await world.signup({ email: 'ada@example.com' })
  await until('the refusal', async () => (await endsOf(world)).length === 1)
  await until('it to be forgotten', async () => (await owedRows(world)).length === 0)
  t.match(await endsOf(world), [{ outcome: 'refused', attempts: 1, error: 'EENVELOPE RCPT TO 550' }])
  await first.close()

  const failing = scripted(() => ({ kind: 'failed', error: 'ESOCKET' }))
  const second = await begin(world, failing.mailer)
  t.teardown(() => second.close())
  await world.call('POST', '/auth/forgot-password', { body: { email: 'ada@example.com' } })
  for (let attempts = 1; (await endsOf(world)).length === 1; attempts++) {
    await until('an attempt', () => failing.mails.length === attempts)
    await until(
      'its end',
      async () => (await owedRows(world))[0]?.attempts === attempts || (await endsOf(world)).length > 1,
    )
    const [row] = await owedRows(world)
    if (row === undefined) break
    await until('the sender to wait', () => world.clock.isAwaited(1_000))
    world.clock.advance(row.nextAt - world.clock.now())
  }
  t.same(new Set(failing.mails.map(({ id }) => id)).size, 1, 'one mail')
  t.equal(failing.mails.length, 5, 'as many attempts as fit the hour of the link')
  t.match((await endsOf(world)).at(-1), { outcome: 'unsent', attempts: 5 })
  t.match(world.lines.at(-1), { level: 'error', msg: 'a mail was not sent' })
})

test('a mail is sent once: over a restart, and when the tables are lost', async (t) => {
  const world = await openIdentity(t)
  const failing = scripted(() => ({ kind: 'failed', error: 'ESOCKET' }))
  const first = await begin(world, failing.mailer)
  await world.signup({ email: 'ada@example.com' })
  await until('an attempt', async () => (await owedRows(world))[0]?.attempts === 1)
  await first.close()

  const sending = scripted(() => ({ kind: 'sent' }))
  const second = await begin(world, sending.mailer)
  await until('the sender to wait', () => world.clock.isAwaited(1_000))
  world.clock.advance(MAIL_RETRY_MS[0])
  await until('the mail', async () => (await endsOf(world)).length === 1)
  t.equal(sending.mails[0].id, failing.mails[0].id)
  await second.close()

  const tables = await openLmdbTableStore({ path: join(folderOf(t), 'fresh-tables'), clock: world.clock })
  const again = scripted(() => ({ kind: 'sent' }))
  const third = await begin({ ...world, tables }, again.mailer)
  await world.signup({ email: 'bob@example.com' })
  await until('what is new', () => again.mails.length > 0)
  await until('all of it', async () => (await owedRows({ tables })).length === 0)
  t.same(
    again.mails.map(({ to }) => to),
    ['bob@example.com'],
    'nobody is written to twice',
  )
  await third.close()
  await tables.close()
})

test('a mail says what is true when it is sent: nothing of a link that ended meanwhile', async (t) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  const { _id } = (
    await owner.call('POST', '/user/invite', { email: 'ada@example.com', roleId: await world.roleId(owner, 'planner') })
  ).body.data
  await owner.call('POST', `/user/${_id}/invite`)
  await owner.call('PATCH', '/organization', { name: 'Renamed' })
  const { mailer, mails } = scripted(() => ({ kind: 'sent' }))
  const reactor = await begin(world, mailer)
  t.teardown(() => reactor.close())
  await until('the mails', () => mails.length === 2)
  await until('all of it', async () => (await owedRows(world)).length === 0)
  t.same(mails.map(({ to }) => to).sort(), ['ada@example.com', owner.email], 'one invitation of two')
  t.match(mails.find(({ to }) => to === 'ada@example.com')?.subject, /Renamed/)
})

test('mails are in the language of their reader', async (t) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  await owner.call('PATCH', '/organization/settings', { language: 'de-AT' })
  await owner.call('PATCH', '/user', { language: 'pl' })
  await owner.call('POST', '/user/invite', { email: 'ada@example.com', roleId: await world.roleId(owner, 'planner') })
  await world.call('POST', '/auth/forgot-password', { body: { email: owner.email } })
  const { mailer, mails } = scripted(() => ({ kind: 'sent' }))
  const reactor = await begin(world, mailer)
  t.teardown(() => reactor.close())
  await until('the mails', () => mails.length === 3)
  t.match(mails.find(({ to }) => to === 'ada@example.com')?.subject, /eingeladen/)
  t.ok(mails.some(({ to, subject }) => to === owner.email && subject === 'Wybierz nowe hasło'))
})

test('every text exists in every language, fills its gaps, and lets nobody in', async (t: Test) => {
  const view = {
    organization: 'A <b> & "c"',
    inviter: 'Eve http://evil.example/x',
    oldEmail: 'o@a.b',
    newEmail: 'n@a.b',
  }
  const link = 'https://map.example.com/x?token=abc'
  for (const [language, texts] of Object.entries(MAIL_LANGUAGES))
    for (const kind of Object.keys(texts) as MailKind[]) {
      const { subject, text, html } = renderMail(kind, `${language}-XX`, view, texts[kind].button && link)
      for (const part of [subject, text, html])
        t.notMatch(part, /\{\{|\}\}|evil\.example|undefined/, `${language} ${kind}`)
      t.notMatch(html, '<b>')
      t.match(html, `lang="${language}"`)
      t.equal(text.includes(link), texts[kind].button !== undefined)
      t.equal(html.includes(`href="${link}"`), texts[kind].button !== undefined)
    }
  t.match(renderMail('reset', 'tlh', view, link).subject, 'Choose a new password')
  t.match(renderMail('reset', '__proto__', view, link).subject, 'Choose a new password')
})
