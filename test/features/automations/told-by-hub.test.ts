import { test } from 'tap'
import { sightOfRun } from '../../../src/features/automations/run-sight.ts'
import type { TaskValues } from '../../../src/features/tasks/views.ts'
import { callerWith } from '../../support/callers.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openSocket } from '../../support/open-socket.ts'
import { ask, type Json, signUp, startService } from '../../support/service.ts'

test('runs about tasks, plans and records are told to users of some hubs as the log of runs lists them', async (t) => {
  const wanted = { trackerIds: undefined, hubId: undefined, teamId: undefined }
  const isTold = (
    subject: Parameters<typeof sightOfRun>[0],
    {
      permissions = [] as string[],
      hubIds = ['a'] as 'all' | string[],
      ...asked
    }: object & { [name: string]: unknown },
  ): boolean | undefined =>
    sightOfRun(subject, asked.now as TaskValues | undefined).isFor?.({
      wanted: { ...wanted, ...asked },
      caller: callerWith(permissions as string[], { hubIds: hubIds as 'all' | string[], userId: 'me' }),
    })
  const task = { type: 'task', id: 't', hubId: 'a' } as const
  t.ok(isTold(task, { permissions: ['dispatch/task'] }))
  t.notOk(isTold(task, { permissions: ['dispatch/task'], hubIds: ['b'] }))
  t.notOk(isTold(task, {}), 'who sees their own tasks only, of one that is gone')
  const now = { hubId: 'a', assigneeIds: ['me'] }
  t.ok(isTold(task, { now }), 'of one of theirs')
  t.notOk(isTold(task, { now: { ...now, assigneeIds: ['other'] } }), "of a colleague's")
  t.notOk(isTold(task, { now: { ...now, hubId: 'b' } }), 'of one that left the hub')
  t.ok(isTold(task, { hubIds: 'all', hubId: 'a' }))
  t.notOk(isTold(task, { hubIds: 'all', hubId: 'b' }), 'another hub was asked for')
  t.notOk(isTold(task, { hubIds: 'all', trackerIds: new Set(['x']) }))
  const plan = { type: 'routingResult', id: 'r', hubId: 'a' } as const
  t.ok(isTold(plan, { permissions: ['view/routing'] }))
  t.notOk(isTold(plan, { permissions: ['dispatch/task'] }))
  const record = { type: 'record', id: 'd' } as const
  t.ok(isTold(record, { permissions: ['view/data'], hubIds: [] }))
  t.notOk(isTold(record, { permissions: ['dispatch/task'] }))
  t.notOk(isTold(record, { hubIds: 'all', hubId: 'a' }))
  t.same(sightOfRun({ type: 'tracker', id: 'x' }), { trackerId: 'x' })
})

test('a user of one hub hears live how the automations of its tasks go', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId, password } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const { _id: otherHub } = await make('/hub', { name: 'Other', lat: 1, lng: 1 })
  const permissions = ['view/automation', 'view/task', 'dispatch/task']
  const { _id: roleId } = await make('/role', { name: 'Dispatcher', permissions })
  const email = 'dispatcher@example.com'
  const { _id: userId } = await make('/user', { name: 'Dispatcher', email, password, roleId, hubId: [hubId] })
  const login = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const components = [{ id: 'note', type: 'text', label: 'Note' }]
  const { _id: flowId } = await make('/flow', { name: 'Visits', steps: [{ id: 's', name: 'S', components }] })
  const automationDetails = { channel: 'inApp', to: [userId], text: '{{task.title}}' }
  const rest = { event: 'onTaskCreated', automationType: 'notification', automationDetails }
  await make('/automation', { name: 'Tell of tasks', ...rest })
  const { _id: ownRoleId } = await make('/role', { name: 'Driver', permissions: ['view/automation', 'view/task'] })
  const driver = { name: 'Driver', email: 'driver@example.com', password, roleId: ownRoleId, hubId: [hubId] }
  const { _id: driverId } = await make('/user', driver)
  const ofDriver = await ask(service, 'POST', '/auth/login', { body: { email: driver.email, password } })
  const socketOf = async (of: string) => {
    const opened = await openSocket(service, 'live', of)
    opened.send({ type: 'subscribe', id: 's', channels: ['automation'] })
    await opened.heard(({ type }) => type === 'snapshot')
    return opened
  }
  const socket = await socketOf(login.token)
  const own = await socketOf(ofDriver.token)

  const { _id: unseen } = await make('/task', { flowId, title: 'Elsewhere', hubId: otherHub })
  const { _id: taskId } = await make('/task', { flowId, title: 'Here', hubId })
  const { event } = await socket.heard(({ event }) => event?.taskId === taskId && event.status === 'succeeded')
  const { data: listed } = await ask(service, 'GET', `/automation-log?taskId=${taskId}`, { token: login.token })
  t.same(listed, [event], 'as the read answers it')
  t.notOk(socket.messages.some((one) => one.event?.taskId === unseen))
  socket.close()

  const { _id: ownId } = await make('/task', { flowId, title: 'Mine', hubId, assigneeIds: [driverId] })
  const last = await own.heard(({ event }) => event?.taskId === ownId && event.status === 'succeeded')
  const { data: ownListed } = await ask(service, 'GET', '/automation-log', { token: ofDriver.token })
  t.same(ownListed, [last.event], 'who sees their own tasks only hears of those')
  t.same(
    own.messages.filter((one) => one.event !== undefined && one.event.taskId !== ownId),
    [],
  )
  own.close()
})
