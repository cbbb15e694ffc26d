import { test } from 'tap'
import { openIdentity } from '../../support/open-identity.ts'

const AZURE = {
  name: 'Sign-in',
  tenantId: '72f988bf-86f1-41af-91ab-2d7cd011db47',
  clientId: 'client',
  clientSecret: 'very-secret-value',
}

test('an app integration is updated by both names, and never says its secret', async (t) => {
  const { signup, log } = await openIdentity(t)
  const owner = await signup()
  const created = await owner.call('POST', '/app-integration', AZURE)
  t.match(created, { status: 201, body: { data: { type: 'azure', name: 'Sign-in', isActive: true, version: 1 } } })
  const { _id, ...record } = created.body.data
  const put = await owner.call('PUT', `/app-integration/${_id}`, { ...record, _id, name: 'By PUT' })
  t.match(put, { status: 200, body: { data: { name: 'By PUT', version: 2 } } })
  const post = await owner.call('POST', `/app-integration/${_id}/`, {
    ...AZURE,
    clientSecret: 'another',
    name: 'By POST',
  })
  t.match(post, { status: 200, body: { data: { name: 'By POST', version: 3 } } })
  t.match(await owner.call('POST', `/app-integration/${_id}`, { ...record, version: 2 }), {
    status: 409,
    body: { code: 'stale_version', version: 3 },
  })
  t.match(await owner.call('PATCH', `/app-integration/${_id}`, { isActive: false }), { status: 200 })
  const listed = await owner.call('GET', '/app-integrations?type=azure&isActive=false')
  t.match(listed.body, { total: 1, data: [{ _id, isActive: false }] })
  const named = async (name: string) => (await owner.call('GET', `/app-integrations?name=${name}`)).body.total
  t.same([await named('By%20POST'), await named('By%20PUT')], [1, 0])
  const read = await owner.call('GET', `/app-integration/${_id}`)
  for (const answer of [created, put, post, listed, read])
    t.notMatch(JSON.stringify(answer.body), /secret|another/i, 'no answer has it')
  const events = await log.read(`appIntegration-${_id}`, 0, 100)
  t.equal(events.length, 4)
  t.notMatch(events.map(({ data }) => Buffer.from(data).toString()).join(), /very-secret-value|"another"/)
  t.equal((await owner.call('GET', '/app-integrations?clientSecret=another')).status, 400)

  const stranger = await signup()
  t.equal((await stranger.call('GET', `/app-integration/${_id}`)).status, 404)
  t.equal((await stranger.call('POST', `/app-integration/${_id}`, AZURE)).status, 404)
  t.equal((await owner.call('DELETE', `/app-integration/${_id}`)).status, 200)
})

test('a tenant that stands for any tenant, and what is missing or too long, is refused with its path', async (t) => {
  const { signup } = await openIdentity(t)
  const owner = await signup()
  for (const [field, value] of [
    ['tenantId', 'common'],
    ['tenantId', 'organizations'],
    ['tenantId', 'Common'],
    ['tenantId', 'CONSUMERS'],
    ['tenantId', 'common.'],
    ['tenantId', 'a/../b'],
    ['clientId', 'x?y'],
    ['clientSecret', undefined],
    ['clientSecret', 's'.repeat(501)],
    ['type', 'google'],
  ] as const)
    t.match(await owner.call('POST', '/app-integration', { ...AZURE, [field]: value }), {
      status: 400,
      body: { errors: [{ path: `/${field}` }] },
    })
})

test('the secret that every sign-in needs cannot be taken away', async (t) => {
  const { signup } = await openIdentity(t)
  const owner = await signup()
  const { _id } = (await owner.call('POST', '/app-integration', AZURE)).body.data
  t.match(await owner.call('PATCH', `/app-integration/${_id}`, { clientSecret: null }), {
    status: 400,
    body: { errors: [{ path: '/clientSecret', message: 'is required' }] },
  })
  t.match(await owner.call('PATCH', `/app-integration/${_id}`, { name: 'Renamed' }), {
    status: 200,
    body: { data: { version: 2 } },
  })
})
