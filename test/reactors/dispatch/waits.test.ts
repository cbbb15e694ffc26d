import { test } from 'tap'
import { until } from '../../support/service.ts'
import { PASSWORD } from '../../support/open-identity.ts'
import { openOffice } from './open-office.ts'

test('only an action that reads lists waits for them', async (t) => {
  const office = await openOffice(t)
  const { begin, automate, ask, ended, flow, hubId, userId } = office
  let waits = 0
  const settle = async (): Promise<boolean> => {
    waits++
    return false
  }
  const dispatcher = await begin(office.log, { settle })
  t.teardown(() => dispatcher.close())
  const rules = { fields: { 'task.flowId': flow._id } }
  const event = { event: 'onTaskCreated', rules }
  const made = [
    await automate({ ...event, automationType: 'updateTask', automationDetails: { components: { count: 7 } } }),
    await automate({ ...event, automationType: 'assignTask', automationDetails: { assigneeIds: [userId] } }),
    await automate({
      ...{ ...event, automationType: 'notification' },
      automationDetails: { channel: 'inApp', to: [userId], text: 'x' },
    }),
  ]
  const reads = { components: { phone: { fromDataSource: 'phone' } } }
  const waiting = await automate({ ...event, automationType: 'updateTask', automationDetails: reads })
  await ask('POST', '/task', { flowId: flow._id, hubId, title: 'Call' })
  for (const { _id } of made) t.match(await ended(_id, 1), [{ status: 'succeeded', last: { failures: 0 } }])
  await until('the other to wait', () => waits > 0)
  t.match(Object.values(await office.runsOf(waiting._id)), [{ status: 'pending' }])
})

test('a right that the editor loses while an action waits for lists is not had any more', async (t) => {
  const office = await openOffice(t)
  const { begin, automate, ask, ended, login, type, flow, hubId } = office
  const permissions = ['view/automation', 'edit/automation', 'view/task', 'edit/task', 'dispatch/task', 'view/data']
  const role = await ask('POST', '/role', { name: 'Clerk', permissions })
  const email = 'clerk@example.com'
  await ask('POST', '/user', { name: 'C', email, password: PASSWORD, roleId: role._id, hubId: [hubId] })
  const clerk = await login(email)
  let isWaiting = false
  let goOn = (): void => undefined
  const listed = new Promise<void>((resume) => (goOn = resume))
  const settle: typeof office.settle = async (...asked) => {
    isWaiting = true
    await listed
    return office.settle(...asked)
  }
  const dispatcher = await begin(office.log, { settle })
  t.teardown(() => dispatcher.close())
  const details = { flowId: flow._id, hubId, task: { title: 'Call' } }
  const created = { event: 'onDataSourceCreated', automationType: 'createTask' }
  const { _id } = await automate({ ...created, automationDetails: details }, clerk)
  await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'C-9' } })
  await until('the run to wait', () => isWaiting)
  await ask('PATCH', `/role/${role._id}`, { permissions: permissions.filter((one) => one !== 'edit/task') })
  goOn()
  t.match(await ended(_id, 1), [{ status: 'skipped', reason: 'hidden' }])
})
