import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { imported } from './import-calls.ts'
import { mailsIn, tokenIn } from './read-mail.ts'
import { formOf, png } from './pictures.ts'
import { ask, call, signUp, until, type Service } from './service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

export interface ApiWorld {
  token: string
  email: string
  password: string
  organizationId: string
  /** Things of which nothing else hangs. */
  spare: { [name: string]: string }
  /** Of links that were mailed, by the operation that takes them. */
  tokens: { [operationId: string]: string }
  /** By the name that a path gives them. */
  ids: { [name: string]: string }
}

const TIMES = 8

const FLOW_COMPONENTS = [
  { id: 'note', type: 'text' },
  { id: 'photo', type: 'photo' },
  { id: 'paper', type: 'file' },
]

/** An organization that holds one of everything, so that each route has something real to answer. Back-tests of the service over a few points must be jobs. */
export const openApiWorld = async (service: Service): Promise<ApiWorld> => {
  const { token, email, password, organizationId } = await signUp(service, 'World')
  const { _id: userId } = (await ask(service, 'GET', '/user', { token })).data
  const make = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const hub = await make('/hub', { name: 'Second hub', lat: 52.1, lng: 21.1 })
  const role = await make('/role', { name: 'Watcher', permissions: ['view/hub'] })
  const userEmail = `planner.${email}`
  const user = await make('/user', {
    name: 'Planner',
    email: userEmail,
    roleId: role._id,
    hubId: [hub._id],
    password: 'Correct-horse-8-battery',
  })
  const team = await make('/team', { name: 'Team', hubId: hub._id, userIds: [user._id] })
  const account = await make('/service-account', { name: 'Program', roleId: role._id, hubId: [hub._id] })
  const vehicle = await make('/vehicle', { name: 'Van', type: 'car', hubId: hub._id })
  const tracker = await make('/tracker', { name: 'Bus', kind: 'vehicle', externalId: 'bus-1' })
  const key = await make('/ingest-key', { name: 'Gateway', autoCreate: true })
  const group = await make('/geofence-group', { name: 'Yards' })
  const geofence = await make('/geofence', {
    name: 'Yard',
    geofenceGroupId: group._id,
    center: { lat: 52, lng: 21 },
    radius: 500,
  })
  const automation = await make('/automation', {
    name: 'Tell',
    event: 'onGeofenceEntry',
    automationType: 'webhook',
    automationDetails: { url: 'http://127.0.0.1:9/closed' },
    rules: { fields: { geofenceGroupId: group._id } },
  })
  const setting = await make('/plugin-setting', { plugin: 'colors' })
  const integration = await make('/app-integration', {
    name: 'Sign-in',
    tenantId: '72f988bf-86f1-41af-91ab-2d7cd011db47',
    clientId: 'client',
    clientSecret: 'secret',
  })
  const dataType = await make('/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'name', type: 'text' },
      { name: 'phone', type: 'text' },
      { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
      { name: 'contract', type: 'file' },
    ],
  })
  const record = await make('/data', { dataTypeId: dataType._id, values: { number: 'C-1', name: 'Shop' } })
  const form = new FormData()
  form.append('name', 'Colors')
  form.append('files', new File(['globalThis.one = 1'], 'main.js'))
  const addon = (await ask(service, 'POST', '/addon', { token, ...(await formOf(form)) })).data
  const picture = { token, body: png(), headers: { 'content-type': 'image/png' } }
  const { logo } = (await ask(service, 'PUT', '/organization/logo', picture)).data
  const flow = await make('/flow', {
    name: 'Round',
    steps: [{ id: 'one', name: 'One', components: FLOW_COMPONENTS }],
  })
  await make('/automation', {
    name: 'Tell me',
    event: 'onTaskCreated',
    automationType: 'notification',
    automationDetails: { channel: 'inApp', to: userId, text: '{{task.title}} is there.' },
    rules: { fields: { 'task.title': 'One' } },
  })
  const taskOf = (title: string) => make('/task', { flowId: flow._id, title, hubId: hub._id, assigneeIds: [user._id] })
  const [task, assigned, started] = [await taskOf('One'), await taskOf('Two'), await taskOf('Three')]
  await ask(service, 'POST', `/task/${started._id}/start`, { token })
  const share = await make('/share', { taskId: task._id })
  const fileOf = async (): Promise<string> => {
    const file = new FormData()
    file.append('componentId', 'paper')
    file.append('file', new File([Buffer.from([0, 1, 2])], 'paper'))
    return (await ask(service, 'POST', `/task/${assigned._id}/files`, { token, ...(await formOf(file)) })).data._id
  }
  const fileId = await fileOf()
  const schedule = await make('/task/schedule', {
    name: 'Round',
    flowId: flow._id,
    repeat: { period: 'daily', at: '07:30' },
    timeZone: 'Europe/Warsaw',
    startTime: '2026-01-01T00:00:00Z',
    task: { title: 'Round', hubId: hub._id },
  })
  const routingIds = await routings(
    service,
    token,
    make,
    { hubId: hub._id, userId: user._id, vehicleId: vehicle._id },
    () => make('/task', { flowId: flow._id, title: 'Visit', hubId: hub._id, lat: 52.1, lng: 21.1 }),
  )
  const notification = await firstOf(service, token, '/notifications')
  const trip = await drive(service, token, tracker.deviceKey)
  const first = await firstOf(service, token, '/location-histories')
  const run = await firstOf(service, token, '/automation-log?status=dead')
  const tripRow = await firstOf(service, token, '/trips')
  const exportOf = async (): Promise<string> => {
    await call(service, 'POST', '/data/export', { token, body: { dataTypeId: dataType._id } })
    return (await firstOf(service, token, '/tasks/export-log?sortBy=createdAt&sortOrder=desc'))._id
  }
  const configOf = async (name: string): Promise<string> =>
    (await make('/export-config', { name, target: 'data', dataTypeId: dataType._id }))._id
  const backtestId = await backtest(service, token, geofence._id)
  const importOf = async (text: string): Promise<string> =>
    (await imported(service, token, text, { type: 'datasource', dataTypeId: dataType._id }))._id
  return {
    token,
    email,
    password,
    organizationId,
    spare: {
      ...(await spare(make)),
      routingResultId: (await make('/routing-result', { hubId: hub._id }))._id,
      fileId: await fileOf(),
      exportId: await exportOf(),
      exportConfigId: await configOf('Spare'),
      importId: await importOf('number\nI-0\n'),
      sessionId: await furtherSession(service, email, password),
    },
    tokens: await mailedTokens(service, make, role._id, email),
    ids: {
      // A tile of the base map.
      ...{ z: '6', x: '35', y: '21' },
      hubId: hub._id,
      roleId: role._id,
      userId: user._id,
      invitedUserId: (await make('/user/invite', { email: `waiting.${email}`, roleId: role._id }))._id,
      email: userEmail,
      teamId: team._id,
      serviceAccountId: account._id,
      vehicleId: vehicle._id,
      trackerId: tracker._id,
      ingestKeyId: key._id,
      geofenceGroupId: group._id,
      geofenceId: geofence._id,
      automationId: automation._id,
      organizationId,
      addonId: addon._id,
      fileName: 'main.js',
      logoName: logo.slice(logo.lastIndexOf('/') + 1),
      pluginSettingId: setting._id,
      appIntegrationId: integration._id,
      runId: run._id,
      tripId: tripRow._id,
      shareId: share._id,
      token: trip,
      'token:followShare': share.token,
      'token:getFollowPage': share.token,
      pointId: first._id,
      backtestId,
      exportId: await exportOf(),
      exportConfigId: await configOf('Customers'),
      importId: await importOf('number,kind\nI-1,none\n'),
      'importId:undoImport': await importOf('number\nI-2\n'),
      notificationId: notification._id,
      dataTypeId: dataType._id,
      dataId: record._id,
      name: 'Customers',
      'name:getPageAsset': readdirSync('dist/console/assets').find((name) => name.endsWith('.css'))!,
      flowId: flow._id,
      taskId: task._id,
      scheduleId: schedule._id,
      ...routingIds,
      fileId,
      'trackerId:provisionTracker': (await make('/tracker', { name: 'Phone', hubId: hub._id }))._id,
      'taskId:startTask': assigned._id,
      'taskId:finishTask': started._id,
    },
  }
}

/** Routing results in the states that operations need. */
const routings = async (
  service: Service,
  token: string,
  make: (path: string, body: Json) => Promise<Json>,
  { hubId, userId, vehicleId }: { [name: string]: string },
  task: () => Promise<Json>,
): Promise<ApiWorld['ids']> => {
  const driven = await make('/vehicle', { name: 'Driven van', hubId, userId })
  const visits = [{ taskId: (await task())._id }]
  const dispatchable = await make('/routing-result', { hubId, routes: [{ vehicleId: driven._id, visits }] })
  const body = { hubId, vehicleIds: [vehicleId], taskIds: [(await task())._id], startAt: Date.now(), steps: 10 }
  const { _id: plannedId } = (await ask(service, 'POST', '/routing', { token, body })).data
  await until('a plan', async () => {
    const { state } = (await ask(service, 'GET', `/routing-result/${plannedId}`, { token })).data
    return state === 'planned'
  })
  return {
    routingResultId: (await make('/routing-result', { name: 'Monday', hubId }))._id,
    'routingResultId:dispatchRoutes': dispatchable._id,
    'routingResultId:stopRouting': plannedId,
    'routingResultId:endRouting': plannedId,
    'taskId:planRoutes': (await task())._id,
  }
}

const spare = async (make: (path: string, body: Json) => Promise<Json>): Promise<ApiWorld['spare']> => ({
  hubId: (await make('/hub', { name: 'Spare hub', lat: 52, lng: 21 }))._id,
  roleId: (await make('/role', { name: 'Spare role' }))._id,
  geofenceGroupId: (await make('/geofence-group', { name: 'Spare group' }))._id,
  flowId: (await make('/flow', { name: 'Spare flow', steps: [{ id: 'one', name: 'One', components: [] }] }))._id,
  dataTypeId: (
    await make('/data-type', { name: 'Spare type', primaryKey: 'id', fields: [{ name: 'id', type: 'text' }] })
  )._id,
})

/** A session that nobody uses. */
export const furtherSession = async (service: Service, email: string, password: string): Promise<string> => {
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  return JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).jti
}

/** One link of each kind, each of a person of its own, as their mails bring them. */
const mailedTokens = async (
  service: Service,
  make: (path: string, body: Json) => Promise<Json>,
  roleId: string,
  email: string,
): Promise<ApiWorld['tokens']> => {
  const mailed = async (to: string, page: string): Promise<string> => {
    let token = ''
    await until(`a mail to ${to}`, () => {
      const mail = mailsIn(join(service.data, 'mail')).find(
        ({ headers, text }) => headers.to === to && text.includes(`/${page}?token=`),
      )
      token = mail === undefined ? '' : tokenIn(mail)
      return token !== ''
    })
    return token
  }
  const [guest, forgetful, moving, moved] = ['guest', 'forgetful', 'moving', 'moved'].map((who) => `${who}.${email}`)
  const password = 'Correct-horse-9-battery'
  await make('/user/invite', { email: guest, roleId })
  await make('/user', { name: 'Forgetful', email: forgetful, password, roleId })
  await ask(service, 'POST', '/auth/forgot-password', { body: { email: forgetful } })
  await make('/user', { name: 'Moving', email: moving, password, roleId })
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email: moving, password } })
  await ask(service, 'PATCH', '/user', { token, body: { email: moved, currentPassword: password } })
  return {
    acceptInvitation: await mailed(guest, 'accept-invitation'),
    resetPassword: await mailed(forgetful, 'reset-password'),
    verifyEmail: await mailed(moved, 'verify-email'),
  }
}

/** A trip into the yard and out of it; answers its tracking token. */
const drive = async (service: Service, token: string, deviceKey: string): Promise<string> => {
  const start = Date.now() - TIMES * 10_000
  const points = Array.from({ length: TIMES }, (_, i) => ({
    recordedAt: start + i * 10_000,
    lat: 52.02 - i * 0.005,
    lng: 21,
    speed: 12,
    accuracy: 4,
    heading: 180,
    battery: 0.8,
    altitude: 100,
    attributes: { door: 'open' },
    ...(i === 0 ? { trip: 'start' } : i === TIMES - 1 ? { trip: 'finish' } : {}),
  }))
  const answer = await ask(service, 'POST', '/location-history/bulk', { token: deviceKey, body: { points } })
  const tripToken = answer.data.trackingTokens[0].token as string
  await until(
    'the trip to be decided',
    async () =>
      (await call(service, 'GET', `/location-history/tracking/${tripToken}`, { token })).json.data.points.length ===
      TIMES,
  )
  return tripToken
}

/** A back-test over all points, which is a job; answers its id when it is completed. */
const backtest = async (service: Service, token: string, geofenceId: string): Promise<string> => {
  const path = `/geofence/${geofenceId}/backtest`
  const { _id } = (await ask(service, 'POST', path, { token, body: { from: 0, to: Date.now() } })).data
  await until(
    'the back-test',
    async () => (await ask(service, 'GET', `${path}/${_id}`, { token })).data.status === 'completed',
  )
  return _id
}

const firstOf = async (service: Service, token: string, path: string): Promise<Json> => {
  let rows: Json[] = []
  await until(path, async () => (rows = (await ask(service, 'GET', path, { token })).data).length > 0)
  return rows[0]
}
