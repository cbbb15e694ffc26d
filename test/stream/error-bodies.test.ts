import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { faultsOf } from '../support/open-api.ts'
import { ask, call, type Json, signUp, startService } from '../support/service.ts'

test('what errors say beside their message is in the document', { timeout: 300_000 }, async (t) => {
  const service = await startService(folderOf(t), ['--trackers-max', '1', '--organizations-per-user', '1'])
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const document = (await call(service, 'GET', '//openapi.json')).json
  const refused = async (member: string, method: string, path: string, body: Json): Promise<void> => {
    const { json, text } = await call(service, method, path, { token, body })
    t.ok(member in json, member, { text })
    t.same(faultsOf({ $ref: '#/components/schemas/Error' }, json, { document }), [], member)
  }
  const made = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data

  await made('/tracker', { name: 'One', kind: 'device' })
  await refused('limit', 'POST', '/tracker', { name: 'Two', kind: 'device' })
  await refused('used', 'POST', '/organization', { organizationName: 'Another one' })
  await refused('errors', 'POST', '/hub', { name: '', lat: 91, lng: 0 })
  const [hub] = (await ask(service, 'GET', '/hubs', { token })).data
  await refused('version', 'PATCH', `/hub/${hub._id}`, { name: 'East', version: 9 })
  await refused('fields', 'PATCH', '/user', { status: 'disabled' })

  const [flow] = (await ask(service, 'GET', '/flows', { token })).data
  const task = await made('/task', { flowId: flow._id, title: 'Deliver', hubId: hub._id })
  await refused('data', 'POST', `/task/${task._id}/finish`, {})
  const vehicle = await made('/vehicle', { name: 'Van', hubId: hub._id })
  const at = new Date().toISOString()
  const visits = [{ taskId: task._id, arrivalAt: at, departureAt: at, distanceMeters: 1 }]
  const plan = {
    hubId: hub._id,
    routes: [{ vehicleId: vehicle._id, distanceMeters: 1, durationSeconds: 1, visits }],
  }
  await made('/routing-result', plan)
  await refused('routingResultId', 'POST', '/routing-result', plan)
})
