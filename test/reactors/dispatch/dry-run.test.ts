import { test } from 'tap'
import { LATEST_POSITIONS } from '../../../src/features/locations/views.ts'
import { isFired } from '../../../src/reactors/dispatch/subject-event.ts'
import { PASSWORD, type Session } from '../../support/open-identity.ts'
import { until } from '../../support/service.ts'
import { openOffice } from './open-office.ts'

const NOWHERE = '0190f3a2-7c1e-7d4b-9a55-000000000000'

const listed = (owner: Session, id: string): Promise<unknown> =>
  until('the automation to be listed', async () => (await owner.call('GET', `/automation/${id}`)).status === 200)

test('a dry run is about a task, a record or a tracker that is there', async (t) => {
  const { owner, send, type, flow, hubId, tables } = await openOffice(t)
  await tables.declare(LATEST_POSITIONS)
  const ask = send(owner)
  const hook = async (event: string) => {
    const automationDetails = { url: 'https://example.com/' }
    const made = await ask('POST', '/automation', { name: event, event, automationType: 'webhook', automationDetails })
    await listed(owner, made._id)
    return made
  }
  const run = (id: string, body?: object) => owner.call('POST', `/automation/${id}/test`, body)
  const task = await ask('POST', '/task', { flowId: flow._id, title: 'Call Ada', hubId, components: { count: 3 } })
  const record = await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'C-7', phone: '5' } })
  const tracker = await ask('POST', '/tracker', { name: 'Van 7', kind: 'device', hubId })
  const [onTask, onRecord, onTrip] = [
    await hook('onTaskCreated'),
    await hook('onDataSourceCreated'),
    await hook('onStartTrip'),
  ]
  t.match((await run(onTask._id)).body.data.body.data.task, { title: 'Sample task' })
  t.match((await run(onTask._id, { taskId: task._id.toUpperCase() })).body.data.body.data.task, {
    ...{ _id: task._id, title: 'Call Ada', components: { count: 3 } },
  })
  t.match((await run(onRecord._id, { recordId: record._id })).body.data.body.data, {
    record: { _id: record._id, values: { number: 'C-7', phone: '5' } },
    dataType: { name: 'Customers' },
  })
  t.match((await run(onTrip._id, { trackerId: tracker._id })).body.data.body.data.tracker, { name: 'Van 7' })
  for (const [id, body, path] of [
    [onTask._id, { taskId: NOWHERE }, '/taskId'],
    [onTrip._id, { trackerId: NOWHERE }, '/trackerId'],
    [onRecord._id, { recordId: NOWHERE }, '/recordId'],
    [onTask._id, { recordId: record._id }, '/recordId'],
    [onTask._id, { taskId: task._id, trackerId: tracker._id }, '/trackerId'],
    [onTask._id, { geofenceId: NOWHERE }, '/geofenceId'],
  ] as const)
    t.match(await run(id, body), { status: 400, body: { errors: [{ path }] } }, path)
})

test('a dry run shows the caller no field that their role hides, though the last editor sees it', async (t) => {
  const { owner, send, type, userId, hubId, login } = await openOffice(t)
  const ask = send(owner)
  const record = await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'C-7', hidden: 'of nobody' } })
  const text = '{{record.values.number}} {{record.values.hidden}}'
  const { _id } = await ask('POST', '/automation', {
    ...{ name: 'Tell', event: 'onDataSourceCreated', automationType: 'notification' },
    automationDetails: { channel: 'inApp', to: [userId], text },
  })
  await listed(owner, _id)
  const { _id: roleId } = await ask('POST', '/role', {
    name: 'Clerk',
    permissions: ['view/automation', 'edit/automation', 'view/data'],
    permissionDetails: [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['hidden'] }],
  })
  const email = 'clerk@example.com'
  await ask('POST', '/user', { name: 'Clerk', email, password: PASSWORD, roleId, hubId: [hubId] })
  const clerk = await login(email)
  const run = (by: Session) => by.call('POST', `/automation/${_id}/test`, { recordId: record._id })
  t.match((await run(owner)).body.data, { text: 'C-7 of nobody' })
  t.equal((await run(clerk)).body.data.text.trim(), 'C-7')
})

test('an automation on an event that nothing makes yet says so', async (t) => {
  const { owner, send } = await openOffice(t)
  for (const event of ['onRoutingResultFinished', 'onRoutingResultDispatched', 'onTaskCreated'] as const) {
    const automationDetails = { url: 'https://example.com/' }
    const made = await send(owner)('POST', '/automation', {
      name: event,
      event,
      automationType: 'webhook',
      automationDetails,
    })
    await listed(owner, made._id)
    const { notice } = await send(owner)('GET', `/automation/${made._id}`)
    if (isFired(event)) t.equal(notice, undefined, event)
    else t.match(JSON.stringify(notice), /Nothing on this server makes this event yet/)
  }
})
