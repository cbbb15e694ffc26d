import { OPERATOR } from './access-places.ts'
import type { ApiWorld } from './api-world.ts'
import type { Operation } from './open-api.ts'
import { png } from './pictures.ts'
import { SECOND_FACTOR_CALLS } from './second-factor-calls.ts'
import { type Answer, call, type Service, signUp } from './service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

/** What Microsoft and a browser take part in (test/features/identity/azure.test.ts), or a file of a job (exports.test.ts). */
export const LEADS_ELSEWHERE: readonly string[] = [
  'startAzureSignIn',
  'finishAzureSignIn',
  'exchangeSignIn',
  'downloadExport',
]

let made = 0

const dataTypeBody = () => ({
  name: `Products ${++made}`,
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text' },
    { name: 'name', type: 'text' },
    { name: 'phone', type: 'text' },
    { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
    { name: 'contract', type: 'file' },
  ],
})

const NOWHERE = '0190f3a2-7c1e-7d4b-9a55-000000000000'
/** Bodies for which no example of a document can do: they name what only this test knows. */
const BODIES: { [operationId: string]: (world: ApiWorld) => Json } = {
  switchOrganization: ({ organizationId, password }) => ({ organizationId, password }),
  amendAutomation: () => ({ name: 'Tell the yard at once' }),
  createDataType: () => dataTypeBody(),
  replaceDataType: ({ ids }) => ({ ...dataTypeBody(), name: ids.name }),
  assignTask: ({ ids }) => ({ assigneeIds: [ids.userId] }),
  assignTasks: ({ ids }) => ({ taskIds: [ids.taskId], assigneeIds: [ids.userId] }),
  finishTask: () => ({ components: { note: 'Left with a neighbour' } }),
  amendDataType: () => ({ type: 'customer' }),
  createData: ({ ids }) => ({ dataTypeId: ids.dataTypeId, values: { number: `C-${100 + ++made}`, kind: 'shop' } }),
  writeDataBulk: ({ ids }) => ({
    dataTypeId: ids.dataTypeId,
    mode: 'upsert',
    records: [{ values: { number: `C-${100 + ++made}`, kind: 'shop' } }],
  }),
  exportData: ({ ids }) => ({ dataTypeId: ids.dataTypeId }),
  exportTasks: () => ({}),
  replaceData: () => ({ values: { number: `C-${100 + ++made}`, kind: 'shop' } }),
  login: ({ email, password }) => ({ email, password }),
  replaceUser: ({ ids }) => ({ name: 'Planner', email: ids.email, roleId: ids.roleId, hubId: [ids.hubId] }),
  createRoutingResult: ({ ids }) => ({ hubId: ids.hubId, routes: [{ vehicleId: ids.vehicleId, visits: [] }] }),
  replaceRoutingResult: ({ ids }) => ({ name: 'Tuesday', hubId: ids.hubId, routes: [] }),
  amendRoutingResult: () => ({ name: 'Wednesday' }),
  planRoutes: ({ ids }) => ({
    hubId: ids.hubId,
    taskIds: [ids['taskId:planRoutes'] ?? ids.taskId],
    vehicleIds: [ids.vehicleId],
    startAt: Date.now(),
    steps: 10,
  }),
  backtestGeofence: () => ({ from: Date.now() - 3_600_000, to: Date.now() }),
}
/** These end the token of the call, so they are called with one of their own. */
const ENDS_ITS_TOKEN = ['refreshToken', 'logout', 'createOrganization', 'createOrganizationAlias', 'switchOrganization']

export const addressOf = (operation: Operation, ids: { [name: string]: string }, query = ''): string => {
  const these = operation.operationId === 'inviteUserAgain' ? { ...ids, userId: ids.invitedUserId } : ids
  // What has to be in a state for the operation has an id of its own.
  const idOf = (name: string): string => these[`${name}:${operation.operationId}`] ?? these[name] ?? NOWHERE
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(idOf(name)))
  return (operation.isRoot ? '/' : '') + path + (query === '' ? '' : `?${query}`)
}

/** The example of the document, with ids that are there and names that are free. */
export const bodyOf = ({ operationId, body }: Operation, world: ApiWorld): Json => {
  if (body === undefined) return undefined
  if (operationId === 'importData' || operationId === 'previewImport') return importForm(world)
  if (body.type.startsWith('multipart/')) return formBody(body.schema, body.example)
  if (BODIES[operationId] !== undefined) return BODIES[operationId](world)
  const token = world.tokens[operationId]
  return { ...real(body.example, world.ids), ...(token !== undefined && { token }) }
}

const BOUNDARY = 'form-of-a-test'

/** The headers that a body needs which is no JSON. */
export const headersOf = ({ body }: Operation): { [name: string]: string } =>
  body?.type.startsWith('multipart/') ? { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` } : {}

/** A form with a value for each field that it needs or that has an example: files are pictures, several files scripts. */
const formBody = ({ properties, required }: Json, example: Json): Buffer => {
  const sent = Object.entries<Json>(properties).filter(([name]) => required.includes(name) || name in example)
  const parts = sent.map(([name, schema]) => {
    const isScript = schema.items?.format === 'binary'
    const file = isScript ? '; filename="main.js"' : schema.format === 'binary' ? '; filename="a.png"' : ''
    const text = name === 'name' ? `${example[name]} ${++made}` : example[name]
    const value = isScript ? 'export const one = 1' : file === '' ? text : png()
    return Buffer.concat([
      Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`),
      Buffer.from(value as string),
      Buffer.from('\r\n'),
    ])
  })
  return Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

/** A table of records, of which each has a number of its own. */
const importForm = ({ ids }: ApiWorld): Buffer => {
  const part = (head: string, value: string): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`
  const fields = part('name="type"', 'datasource') + part('name="dataTypeId"', ids.dataTypeId)
  return Buffer.from(`${fields}${part('name="file"; filename="a.csv"', `number\nI-${++made}`)}--${BOUNDARY}--\r\n`)
}

const real = (value: Json, ids: { [name: string]: string }): Json => {
  if (Array.isArray(value)) return value.map((one) => real(one, ids))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (name === 'email') return [name, `made${++made}.${process.pid}@example.com`]
      if (name === 'name') return [name, `${member} ${++made}`]
      if (name === 'plugin') return [name, `${member} ${++made}`]
      if (name === 'externalId') return [name, `made-${++made}`]
      if (name === 'recordedAt') return [name, new Date().toISOString()]
      if (typeof member === 'string' && ids[name] !== undefined && name.endsWith('Id')) return [name, ids[name]]
      if (name === 'hubId' && Array.isArray(member)) return [name, [ids.hubId]]
      return [name, real(member, ids)]
    }),
  )
}

export const queryOf = ({ operationId, path }: Operation, { ids }: Pick<ApiWorld, 'ids'>): string => {
  if (operationId === 'importGeofences') return `geofenceGroupId=${ids.geofenceGroupId}&nameProperty=name`
  if (operationId === 'summarizeTasks') return 'groupBy=state'
  if (!path.startsWith('/reports/')) return ''
  const to = Date.now() + 60_000
  return `from=${to - 86_400_000}&to=${to}${operationId === 'reportSpeeding' ? '&speedLimit=1' : ''}`
}

const freshToken = async (service: Service, { email, password }: ApiWorld): Promise<string> =>
  (await call(service, 'POST', '/auth/login', { body: { email, password } })).json.token

/** Calls an operation once, with what the document shows and the ids of the world; deletes take what is spare. */
export const callOnce = async (
  service: Service,
  world: ApiWorld,
  operation: Operation,
  headers: { [name: string]: string } = {},
): Promise<Answer> => {
  if (operation.operationId === 'eraseOrganization') {
    const { token, password } = await signUp(service, 'Leaving')
    return call(service, 'DELETE', operation.path, { token, body: { password }, headers })
  }
  const ownCall = SECOND_FACTOR_CALLS[operation.operationId]
  if (ownCall !== undefined) return ownCall(service, headers)
  return call(service, ...(await callOf(service, world, operation, headers)))
}

/** What `callOnce` sends, which may so be sent again. */
export const callOf = async (
  service: Service,
  world: ApiWorld,
  operation: Operation,
  headers: { [name: string]: string },
): Promise<[method: string, path: string, options: NonNullable<Parameters<typeof call>[3]>]> => {
  const token =
    operation.isPublic || OPERATOR.includes(operation.operationId)
      ? undefined
      : ENDS_ITS_TOKEN.includes(operation.operationId)
        ? await freshToken(service, world)
        : world.token
  const ids = operation.method === 'DELETE' ? { ...world.ids, ...world.spare } : world.ids
  const options = { token, body: bodyOf(operation, world), headers: { ...headersOf(operation), ...headers } }
  return [operation.method, addressOf(operation, ids, queryOf(operation, world)), options]
}
