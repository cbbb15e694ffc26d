import { test } from 'tap'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

test('settings of a plugin have any content', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const settings = { palette: 'dark', nested: { list: [1, null, true] } }
  const made = await owner.call('POST', '/plugin-setting', { plugin: 'Colors', settings })
  t.match(made, { status: 201, body: { data: { plugin: 'Colors', settings, isActive: true, version: 1 } } })
  const path = `/plugin-setting/${made.body.data._id}`
  t.same((await owner.call('PATCH', path, { settings: { nested: null } })).body.data.settings, { palette: 'dark' })
  t.same((await owner.call('PUT', path, { plugin: 'Colors' })).body.data.settings, {})
  t.match((await owner.call('GET', '/plugin-settings?plugin=Colors&sortBy=plugin&q=col')).body, { total: 1 })
  t.match(await owner.call('POST', '/plugin-setting', { plugin: ' ', settings: [] }), {
    status: 400,
    body: { errors: [{ path: '/plugin' }, { path: '/settings' }] },
  })
  const planner = { name: 'P', email: 'p@example.com', password: PASSWORD, roleId: await roleId(owner, 'planner') }
  await owner.call('POST', '/user', planner)
  t.equal((await (await login(planner.email)).call('GET', '/plugin-settings')).status, 403)
  t.equal((await (await signup()).call('GET', path)).status, 404)
  t.equal((await owner.call('DELETE', path)).status, 200)
  t.equal((await owner.call('GET', path)).status, 404)
})
