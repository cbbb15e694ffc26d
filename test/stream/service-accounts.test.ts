import { test } from 'tap'
import { OWN, PARAMETERS, POINTS } from '../support/access-places.ts'
import { openApiWorld } from '../support/api-world.ts'
import { callOnce } from '../support/each-route.ts'
import { folderOf } from '../support/folder-of.ts'
import { operationsOf } from '../support/open-api.ts'
import { openSocket } from '../support/open-socket.ts'
import { ask, call, startService, until } from '../support/service.ts'

/** What belongs to a person, beside their notifications, which a program has none of. */
const PERSONAL = [
  ...OWN.filter((one) => !/(Notifications?|Export|Permissions)$/.test(one)),
  'createOrganization',
  'createOrganizationAlias',
  'eraseOrganization',
]

test('a program with every permission uses every route that is not about a person', { timeout: 900_000 }, async (t) => {
  const args = ['--webhook-schedule', '20ms']
  const service = await startService(folderOf(t), args, 0, 'dist/test/support/few-points-child.js')
  t.teardown(() => service.kill())
  const world = await openApiWorld(service)
  const { token } = world
  const [{ _id: roleId }] = (await ask(service, 'GET', '/roles?key=owner', { token })).data
  const { data: account } = await ask(service, 'POST', '/service-account', { token, body: { name: 'All', roleId } })
  const key: string = account.key
  const operations = operationsOf((await call(service, 'GET', '//openapi.json')).json)

  await t.test('sockets', async (t) => {
    const live = await openSocket(service, 'live', key)
    live.send({ type: 'subscribe', id: 's', channels: ['positions'] })
    t.match(await live.heard(({ id }) => id === 's'), { type: 'snapshot' })
    const ingest = await openSocket(service, 'ingest', key)
    t.equal(await ingest.closed, 4403, 'it has no tracker of its own')
    const many = await Promise.all(Array.from({ length: 50 }, () => call(service, 'GET', '/hubs', { token: key })))
    t.same([...new Set(many.map(({ status }) => status))], [200], '50 connections at once')
    const path = `/service-account/${account._id}`
    const [{ _id: planner }] = (await ask(service, 'GET', '/roles?key=fieldUser', { token })).data
    await ask(service, 'PATCH', path, { token, body: { roleId: planner } })
    await until('the subscription to end', () => live.messages.some(({ type }) => type === 'error'))
    await ask(service, 'PATCH', path, { token, body: { roleId } })
    const other = await openSocket(service, 'live', key)
    other.send({ type: 'subscribe', id: 'o', channels: ['positions'] })
    await other.heard(({ id }) => id === 'o')
    const { key: next } = (await ask(service, 'POST', `${path}/rotate-key`, { token, body: { now: true } })).data
    t.equal(await other.closed, 4401, 'the key before ended')
    t.equal((await call(service, 'GET', '/hubs', { token: key })).status, 401)
    account.key = next
  })

  const program = { ...world, token: account.key as string }
  for (const operation of operations.filter(({ isPublic, isRoot }) => !isPublic && !isRoot)) {
    const { operationId, method, params } = operation
    const isPersonal = PERSONAL.includes(operationId)
    if (isPersonal || POINTS.includes(operationId)) {
      const path = operation.path.replace(/\{\w+\}/g, '0190f3a2-7c1e-7d4b-9a55-000000000000')
      const answer = await call(service, method, path, { token: program.token, body: operation.body?.example })
      t.match({ status: answer.status, code: answer.json.code }, { status: 403, code: 'forbidden' }, operationId)
      continue
    }
    if (method === 'DELETE') continue
    const answer = await callOnce(service, program, operation)
    const isOwn = params.some((name) => PARAMETERS[name] === 'own') && !/Backtest|Import|Export/.test(operationId)
    const fits = isOwn ? answer.status === 404 : answer.status < 300
    t.ok(fits, `${operationId} answers ${answer.status}`, { text: answer.text.slice(0, 300) })
  }

  const log = (await ask(service, 'GET', `/audit-log?actorId=${account._id}&noun=hub&limit=1`, { token })).data
  t.match(log, [{ actor: { type: 'service', id: account._id }, noun: 'hub' }], 'the audit log says who did it')
  for (const operation of operations.filter(({ method, isPublic }) => method === 'DELETE' && !isPublic)) {
    if (PERSONAL.includes(operation.operationId) || operation.operationId === 'deleteServiceAccount') continue
    const answer = await callOnce(service, program, operation)
    t.ok(answer.status < 500, `${operation.operationId} answers ${answer.status}`, { text: answer.text.slice(0, 300) })
  }
  t.notOk(service.lines.join('\n').includes(key), 'no key in what the service prints')
})
