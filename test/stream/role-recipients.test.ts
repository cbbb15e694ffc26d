import tap, { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, type Json, samplesMade, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Correct-horse-9-battery'

const service = await startService(folderOf(tap))
tap.teardown(() => service.kill())

test('a role whose users an automation tells is not deleted, or gives way to another one there too', async (t) => {
  const { token, email, hubId } = await signUp(service)
  await samplesMade(service, token)
  const send = async (method: string, path: string, body?: Json, by = token): Promise<Json> =>
    (await ask(service, method, path, { token: by, body })).data
  const roleOf = async (name: string, permissions = ['view/task', 'dispatch/task']): Promise<string> =>
    (await send('POST', '/role', { name, permissions }))._id
  const [old, heir] = [await roleOf('Old'), await roleOf('Heir')]
  const address = `told.${email}`
  await send('POST', '/user', { name: 'Told', email: address, password: PASSWORD, roleId: heir, hubId: [hubId] })
  const told = (await ask(service, 'POST', '/auth/login', { body: { email: address, password: PASSWORD } })).token
  const automate = async (name: string, to: Json): Promise<string> => {
    const automationDetails = { channel: 'inApp', to, text: name }
    const kind = { event: 'onTaskCreated', automationType: 'notification' }
    return (await send('POST', '/automation', { name, ...kind, automationDetails, rules: { fields: {} } }))._id
  }
  const one = await automate('One', { roleId: old })
  const several = await automate('Several', [{ roleId: heir }, { roleId: old }])

  const refused = await call(service, 'DELETE', `/role/${old}`, { token })
  t.equal(refused.status, 409, refused.text)
  t.match(refused.json, { code: 'conflict', message: 'It is still in use by 2 automations.' })
  t.same(
    new Set(refused.json.errors.map(({ path }: Json) => path)),
    new Set([`/automation/${one}`, `/automation/${several}`]),
  )

  await send('DELETE', `/role/${old}?replaceWith=${heir}`)
  const detailsOf = async (id: string): Promise<Json> => (await send('GET', `/automation/${id}`)).automationDetails.to
  t.same(await detailsOf(one), { roleId: heir })
  t.same(await detailsOf(several), [{ roleId: heir }])
  const after = await call(service, 'DELETE', `/role/${heir}`, { token })
  t.match(after.json, { code: 'conflict', message: /2 automations/ }, 'what it names now is known')

  const [flow] = await send('GET', '/flows?key=delivery')
  await send('POST', '/task', { flowId: flow._id, title: 'Told of', hubId })
  await until('both to tell', async () => (await send('GET', '/automation-log?status=succeeded')).length === 2)
  await until('what they told', async () => (await send('GET', '/notifications', undefined, told)).length > 0)
})

test('a role is not deleted while an automation tells its users and an address', async (t) => {
  const { token } = await signUp(service)
  const make = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const { _id: roleId } = await make('/role', { name: 'Told', permissions: ['view/task'] })
  const automationDetails = { channel: 'email', to: ['office@example.com', { roleId }], text: 'Told' }
  const told = { name: 'Tell', event: 'onTaskCreated', automationType: 'notification', automationDetails }
  const { _id } = await make('/automation', told)
  const refused = await call(service, 'DELETE', `/role/${roleId}`, { token })
  t.match([refused.status, refused.json.errors?.[0].path], [409, `/automation/${_id}`])
})
