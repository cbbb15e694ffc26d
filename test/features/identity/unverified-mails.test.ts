import { test } from 'tap'
import { openMailbox } from '../../support/mailbox.ts'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'
import { type ReadMail, tokenIn } from '../../support/read-mail.ts'

const DAY_MS = 86_400_000
const TOO_MANY = { status: 429, body: { code: 'rate_limited', message: /nobody has confirmed/ } }

test('an address that nobody has confirmed gets five mails a day, whoever asks: four invitations and a reset', async (t) => {
  const world = await openIdentity(t)
  const mailbox = await openMailbox(t, world)
  const owners: Session[] = []
  for (let n = 0; n < 5; n++) owners.push(await world.signup())
  const toAda = async () => (await mailbox.rest()).filter((mail) => mail.startsWith('ada@')).length
  const invite = async (owner: Session, email = 'ada@example.com') =>
    owner.call('POST', '/user/invite', { email, roleId: await world.roleId(owner, 'planner') })
  const invited = []
  for (const owner of owners.slice(0, 4)) invited.push(await invite(owner))
  t.same(
    invited.map(({ status }) => status),
    [201, 201, 201, 201],
  )
  const refused = await invite(owners[4])
  t.match(refused, TOO_MANY)
  t.ok(Number(refused.headers['Retry-After'] ?? refused.headers['retry-after']) > 80_000, 'until the next day')
  t.match(await owners[0].call('POST', `/user/${invited[0].body.data._id}/invite`), TOO_MANY, 'again, too')
  const elsewhere = world.over(world.log)
  await elsewhere.runs.stopCarryingOn()
  const body = { email: 'Ada@example.com', roleId: await world.roleId(owners[4], 'planner') }
  t.match(
    await elsewhere.call('POST', '/user/invite', { body, caller: await world.callerOf(owners[4]) }),
    TOO_MANY,
    'by another process, too',
  )
  t.equal((await invite(owners[4], 'bob@example.com')).status, 201, 'other addresses have counts of their own')

  const forgot = () => world.call('POST', '/auth/forgot-password', { body: { email: 'ada@example.com' } })
  t.equal((await forgot()).status, 200)
  t.equal(await toAda(), 5)
  for (let n = 0; n < 5; n++) t.equal((await forgot()).status, 200, 'nobody is told')
  t.equal(await toAda(), 5)

  const mails: ReadMail[] = []
  for (let n = 0; n < 5; n++) mails.push(await mailbox.next('ada@example.com'))
  const token = tokenIn(mails.find(({ text }) => text.includes('reset-password')) as ReadMail)
  const reset = await world.call('POST', '/auth/reset-password', { body: { token, password: PASSWORD } })
  t.equal(reset.status, 200, 'a link that is not mailed does not end the one that was')
  t.equal((await invite(owners[4])).status, 201, 'a confirmed address has no such limit')
})

test('what is not mailed any more leaves the mails that are kept for invitations and resets', async (t) => {
  const world = await openIdentity(t)
  const mailbox = await openMailbox(t, world)
  const [one, two] = [await world.signup(), await world.signup()]
  for (const { email } of [one, two]) await mailbox.next(email)
  const change = { email: 'ada@example.com', currentPassword: PASSWORD }
  for (let n = 0; n < 3; n++) {
    t.equal((await one.call('PATCH', '/user', change)).status, 200)
    await mailbox.next(change.email)
    if (n < 2) await mailbox.next(one.email)
  }
  t.match(await one.call('PATCH', '/user', change), TOO_MANY)
  await world.signup({ email: change.email })
  t.same(await mailbox.rest(), [], 'the sign-up is answered, and not mailed')
  t.match(world.lines.at(-1), { msg: 'a mail was not sent', fields: { error: /nobody has confirmed/ } })
  t.notMatch(JSON.stringify(world.lines), change.email)
  const invitation = { email: change.email, roleId: await world.roleId(two, 'planner') }
  t.equal((await two.call('POST', '/user/invite', invitation)).status, 201)
  await mailbox.next(change.email)
  await world.call('POST', '/auth/forgot-password', { body: { email: change.email } })
  await mailbox.next(change.email)
  t.match(
    await one.call('POST', '/user/invite', { ...invitation, roleId: await world.roleId(one, 'planner') }),
    TOO_MANY,
  )
  world.clock.advance(DAY_MS + 1)
  const later = await world.login(one.email)
  t.equal(
    (await later.call('POST', '/user/invite', { ...invitation, roleId: await world.roleId(later, 'planner') })).status,
    201,
  )
})
