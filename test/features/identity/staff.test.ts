import { test } from 'tap'
import { inRollout } from '../../../src/features/geofences/rollout.ts'
import { issuedToken, openIdentity, PASSWORD } from '../../support/open-identity.ts'

test('staff is who has shown that an address of the domain is theirs, not who typed one', async (t) => {
  const world = await openIdentity(t)
  const { signup, authenticator, context, settle, call } = world
  const isStaff = async (token: string): Promise<boolean> =>
    inRollout({ geofenceRollout: [], staffDomains: ['waymark.example'] })(await authenticator.authenticate(token))
  const ada = await signup({ email: 'Ada@Waymark.example' })
  let session = ada
  t.notOk(await isStaff(ada.token), 'signing up proves nothing')
  const { identityId } = (await context.people.findByEmail(ada.email)) ?? {}
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const at = '2026-01-01T00:00:00.000Z'
  const command = async (done: Parameters<typeof context.people.command>[1]) => {
    const wrote = await context.people.command(identityId as string, done, origin)
    if (wrote !== undefined) await settle(wrote, 60_000)
  }
  await command({ type: 'verifyEmail', email: 'eve@waymark.example', at })
  t.notOk(await isStaff(ada.token), 'a link for another address says nothing of this one')
  await command({ type: 'verifyEmail', email: ada.email, at })
  t.ok(await isStaff(ada.token))
  const move = async (email: string) => session.call('PATCH', '/user', { email, currentPassword: PASSWORD })
  await move('ada@elsewhere.example')
  const token = await issuedToken(world, ada.email, 'emailChange')
  t.ok(await isStaff(ada.token), 'nobody has followed the link to the new address')
  session = world.session(await call('POST', '/auth/verify-email', { body: { token } }), 'ada@elsewhere.example')
  t.notOk(await isStaff(session.token))
  await move('boss@waymark.example')
  t.notOk(await isStaff(session.token), 'a new address has to be shown anew')
})
