import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { type ApiWorld, openApiWorld } from '../support/api-world.ts'
import { addressOf, callOnce, LEADS_ELSEWHERE } from '../support/each-route.ts'
import { folderOf } from '../support/folder-of.ts'
import { AUTOMATION_TYPES, CHANNELS, REFUSED, WAYS_OUT } from '../support/hidden-ways.ts'
import { type Operation, operationsOf } from '../support/open-api.ts'
import { openSocket } from '../support/open-socket.ts'
import { formOf } from '../support/pictures.ts'
import { type Answer, ask, call, type Json, type Service, startService, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

/** What only hidden values hold. */
const MARKS = ['okapi', '7654321']
const PASSWORD = 'Correct-horse-9-battery'

const tells = (text: string): boolean => MARKS.some((mark) => text.includes(mark))

interface Walk {
  service: Service
  document: Json
  operations: Operation[]
  /** Of the owner, who sees all. */
  owner: ApiWorld
  /** May do all that a role can allow, but its role hides the phone (by now called mobile), the debt and the contract of customers. */
  clerk: ApiWorld
  clerkId: string
  /** A type whose fields nobody hides. */
  openTypeId: string
  ownerSends(method: string, path: string, body?: Json): Promise<Json>
  clerkSends(method: string, path: string, body?: Json): Promise<Json>
}

/** Its order matters: what automations make is looked for when all of them have run. */
test('what a role hides comes out nowhere', { timeout: 900_000 }, async (t) => {
  const service = await startService(
    folderOf(t),
    ['--webhook-schedule', '20ms'],
    0,
    'dist/test/support/few-points-child.js',
  )
  t.teardown(() => service.kill())
  const walk = await open(service)
  await t.test('every channel and type of automation has its place', async (t) => places(t, walk))
  await t.test('questions about records', async (t) => questions(t, walk))
  await t.test('refusals and conflicts', async (t) => refusals(t, walk))
  await t.test('automations and the live view', async (t) => elsewhere(t, walk))
  await t.test('every operation', async (t) => everyOperation(t, walk))
})

const open = async (service: Service): Promise<Walk> => {
  const document = (await call(service, 'GET', '//openapi.json')).json
  const world = await openApiWorld(service)
  const sender = (token: string) => async (method: string, path: string, body?: Json) =>
    (await ask(service, method, path, { token, body })).data
  const ownerSends = sender(world.token)
  const { dataTypeId, dataId, hubId } = world.ids
  const { fields } = await ownerSends('GET', `/data-type/${dataTypeId}`)
  const more = [{ name: 'debt', type: 'number' }]
  await ownerSends('PATCH', `/data-type/${dataTypeId}`, { fields: [...fields, ...more] })
  const [{ permissions }] = await ownerSends('GET', '/roles?key=admin')
  const hides = { permissionName: 'view/data', dataTypeId, hiddenFields: ['phone', 'debt', 'contract'] }
  const role = await ownerSends('POST', '/role', { name: 'Clerk', permissions, permissionDetails: [hides] })
  const email = `clerk.${world.email}`
  const clerkUser = { name: 'Clerk', email, password: PASSWORD, roleId: role._id, hubId: [hubId] }
  const clerkId = (await ownerSends('POST', '/user', clerkUser))._id
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password: PASSWORD } })
  // A new name does not show it.
  const kept = (await ownerSends('GET', `/data-type/${dataTypeId}`)).fields
  const renamed = kept.map((one: Json) => (one.name === 'phone' ? { ...one, name: 'mobile' } : one))
  await ownerSends('PATCH', `/data-type/${dataTypeId}`, { fields: renamed })
  const form = new FormData()
  form.append('field', 'contract')
  form.append('file', new File(['the contract of an okapi'], 'okapi.txt'))
  const file = await ask(service, 'POST', `/data/${dataId}/files`, { token: world.token, ...(await formOf(form)) })
  const openType = { name: 'Open', primaryKey: 'id', fields: ['id', 'copy'].map((name) => ({ name, type: 'text' })) }
  const openTypeId = (await ownerSends('POST', '/data-type', openType))._id
  const ownType = async (name: string) => (await ownerSends('POST', '/data-type', { ...openType, name }))._id
  const ids = {
    ...world.ids,
    'fileId:readFile': file.data._id,
    // What is changed as a whole is another type: this one keeps its fields.
    'dataTypeId:replaceDataType': await ownType('Replaced'),
    'dataTypeId:amendDataType': await ownType('Amended'),
  }
  return {
    ...{ service, document, operations: operationsOf(document), clerkId, openTypeId, ownerSends },
    owner: { ...world, ids },
    clerk: { ...world, ids, token, email, password: PASSWORD },
    clerkSends: sender(token),
  }
}

let seeds = 0

/** The record of the world with all its hidden values, one of which has just changed. */
const seed = ({ owner, ownerSends }: Walk): Promise<Json> =>
  ownerSends('PATCH', `/data/${owner.ids.dataId}`, {
    values: { name: 'Shop', mobile: `okapi ${++seeds}`, debt: 7654321 },
  })

const enumIn = (schema: Json, document: Json): string[] => {
  const found = schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)]
  return found.enum
}

const places = async (t: Test, { service, document }: Walk): Promise<void> => {
  const types = enumIn(document.components.schemas.NewAutomation.properties.automationType, document)
  t.same([...types].sort(), Object.keys(AUTOMATION_TYPES).sort(), 'AUTOMATION_TYPES of hidden-ways.ts')
  const asyncapi = (await call(service, 'GET', '//asyncapi.json')).text
  const channels = /"channels":\{"type":"array"[^}]*?"enum":\[([^\]]*)\]/.exec(asyncapi)?.[1] ?? ''
  t.same(JSON.parse(`[${channels}]`).sort(), Object.keys(CHANNELS).sort(), 'CHANNELS of hidden-ways.ts')
}

const questions = async (t: Test, walk: Walk): Promise<void> => {
  const { service, owner, clerk } = walk
  const { dataTypeId, dataId } = owner.ids
  await seed(walk)
  const get = (who: ApiWorld, path: string) => call(service, 'GET', path, { token: who.token })
  const of = `dataTypeId=${dataTypeId}`
  for (const [query, fields] of [
    ['values.mobile=okapi', ['mobile']],
    ['values.debt.from=1', ['debt']],
    ['values.debt.to=9999999', ['debt']],
    ['sortBy=values.debt', ['debt']],
    ['sortBy=values.mobile&sortOrder=desc', ['mobile']],
    ['fields=name,mobile,values.debt', ['debt', 'mobile']],
    ['fields=contract', ['contract']],
  ] as const) {
    t.equal((await get(owner, `/data?${of}&${query}`)).status, 200, `${query} is a question`)
    const answer = await get(clerk, `/data?${of}&${query}`)
    t.match({ status: answer.status, fields: answer.json.fields?.sort() }, { status: 403, fields }, query)
  }
  for (const path of [`/data/${dataId}`, '/data/type/customers/C-1'])
    t.match(await get(clerk, `${path}?fields=mobile`), { status: 403, json: { fields: ['mobile'] } }, path)
  for (const scope of ['', `&${of}`])
    for (const [q, isFound] of [
      ['okapi', false],
      ['shop%20okapi', false],
      ['oka', false],
      ['7654321', false],
      ['shop', true],
    ] as const) {
      const found = async (who: ApiWorld) => (await get(who, `/data?q=${q}${scope}&limit=500`)).json
      if (q !== '7654321') t.ok((await found(owner)).total > 0, `${q}${scope} is found by whoever sees it`)
      const { data, total } = await found(clerk)
      t.equal(
        data.some((row: Json) => row._id === dataId),
        isFound,
        `${q}${scope}`,
      )
      t.equal(total, data.length, 'and counted so')
    }
}

/** Errors and conflicts say what the caller sent, never what is there. */
const refusals = async (t: Test, walk: Walk): Promise<void> => {
  const { service, clerk } = walk
  const { dataTypeId, dataId } = clerk.ids
  await seed(walk)
  const send = (method: string, path: string, body: Json) => call(service, method, path, { token: clerk.token, body })
  for (const [status, method, path, body] of [
    [409, 'PUT', `/data/${dataId}`, { values: { number: 'C-1' }, version: 1 }],
    [409, 'POST', '/data', { dataTypeId, values: { number: 'C-1' } }],
    [409, 'POST', '/data', { _id: dataId, dataTypeId, values: { number: 'C-77' } }],
    [400, 'PATCH', `/data/${dataId}`, { values: { debt: 'much' } }],
    [400, 'PATCH', `/data/${dataId}`, { values: { mobile: 1 } }],
    [400, 'PATCH', `/data/${dataId}`, { values: { contract: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f'] } }],
    [409, 'DELETE', `/data-type/${dataTypeId}`, undefined],
  ] as const) {
    const answer = await send(method, path, body)
    t.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
    t.notOk(tells(answer.text), answer.text)
  }
}

const everyOperation = async (t: Test, walk: Walk): Promise<void> => {
  const { service, operations, owner, clerk } = walk
  const walked = operations.filter(
    ({ isRoot, isPublic, operationId }) => !isRoot && !isPublic && !LEADS_ELSEWHERE.includes(operationId),
  )
  const inTurn = [
    ...walked.filter((one) => one.method !== 'DELETE'),
    ...walked.filter((one) => one.method === 'DELETE'),
  ]
  const told = new Set<string>()
  for (const operation of inTurn) {
    const { operationId, method, query } = operation
    const isWayOut = WAYS_OUT.includes(operationId)
    if (isWayOut || method === 'GET') {
      await seed(walk)
      if (tells((await callAs(service, owner, operation)).text)) told.add(operationId)
    }
    if (isWayOut) await seed(walk)
    const answer = await callAs(service, clerk, operation)
    t.notOk(tells(answer.text), `${operationId}: ${answer.text.slice(0, 300)}`)
    if (isWayOut) t.equal(answer.status, REFUSED.includes(operationId) ? 403 : operationId === 'createData' ? 201 : 200)
    if (method !== 'GET' || !query.includes('q')) continue
    const searched = await call(service, 'GET', addressOf(operation, clerk.ids, `q=${MARKS[0]}`), {
      token: clerk.token,
    })
    t.notOk(tells(searched.text) || searched.text.includes(clerk.ids.dataId), `${operationId}?q=${MARKS[0]}`)
  }
  t.same([...told].sort(), [...WAYS_OUT].sort(), 'what tells the owner is WAYS_OUT of hidden-ways.ts')
}

/** As the document has it; a write of a record says its hidden values. */
const callAs = (service: Service, who: ApiWorld, operation: Operation): Promise<Answer> => {
  const { operationId, method } = operation
  const values = { number: `C-${randomUUID()}`, mobile: 'okapi 2', debt: 7654321 }
  const bodies: { [operationId: string]: Json } = {
    createData: { dataTypeId: who.ids.dataTypeId, values },
    replaceData: { values: { ...values, number: 'C-1', contract: [who.ids['fileId:readFile']] } },
    amendData: { values: { debt: 7654321 } },
  }
  const body = bodies[operationId]
  if (body === undefined) return callOnce(service, who, operation)
  return call(service, method, addressOf(operation, who.ids), { token: who.token, body })
}

const RECORD_REFS = [{ ref: 'record.values.mobile' }, { ref: 'record.values.debt' }]

/** One automation of each type that tells of a record, and a socket, all of the clerk. */
const elsewhere = async (t: Test, walk: Walk): Promise<void> => {
  const { service, clerk, clerkId, clerkSends, ownerSends, openTypeId } = walk
  const receiver = await openReceiver(t)
  const socket = await openSocket(service, 'live', clerk.token)
  socket.send({ type: 'subscribe', id: 's', channels: Object.keys(CHANNELS) })
  await socket.heard(({ type }) => type === 'snapshot')
  const made = automationDetails(walk, receiver.url)
  const missing = Object.entries(AUTOMATION_TYPES).filter(([type, place]) => place === 'tells' && !made[type])
  t.same(missing, [], 'each type that tells has its details here')
  const rules = { fields: { 'record.dataTypeId': clerk.ids.dataTypeId } }
  const automate = async (name: string, type: string, send = clerkSends, more: Json = rules): Promise<Json> => {
    const body = {
      name,
      event: 'onDataSourceCreated',
      automationType: type,
      automationDetails: made[type],
      rules: more,
    }
    const one = await send('POST', '/automation', body)
    if (type === 'webhook') receiver.secrets.set(one._id, one.automationDetails.secret)
    return one
  }
  const automations: Json[] = []
  for (const type of Object.keys(made))
    if (await isThere(service, clerk, type)) automations.push(await automate(type, type))
    else t.comment(`${type} is not available yet`)
  const byOwner = await automate('by the owner', 'webhook', ownerSends)
  const guess = { fields: { 'record.values.mobile': { pattern: '^okapi' } } }
  const guessing = await automate('guess', 'webhook', clerkSends, guess)
  const values = { number: 'C-9', name: 'Shop', mobile: 'okapi 9', debt: 7654321 }
  const { _id: dataId } = await ownerSends('POST', '/data', { dataTypeId: clerk.ids.dataTypeId, values })

  const form = new FormData()
  form.append('field', 'contract')
  form.append('file', new File(['paper'], 'okapi.txt'))
  await ask(service, 'POST', `/data/${dataId}/files`, { token: walk.owner.token, ...(await formOf(form)) })

  const ended = async (automationId: string): Promise<boolean> =>
    (await ownerSends('GET', `/automation-log?automationId=${automationId}`)).some(
      ({ status }: Json) => status !== 'pending',
    )
  for (const { _id, name } of [...automations, byOwner]) await until(`${name} to run`, () => ended(_id))
  const statuses = await ownerSends('GET', '/automation-log?limit=500')
  for (const { _id, name } of automations)
    t.match(
      statuses.find(({ automationId }: Json) => automationId === _id),
      { status: 'succeeded' },
      name,
    )
  t.same(await ownerSends('GET', `/automation-log?automationId=${guessing._id}`), [], 'a rule finds nothing hidden')
  const bodyOf = (automationId: string) =>
    JSON.stringify(receiver.deliveries.find(({ body }) => body.data.automationId === automationId)?.body)
  t.ok(tells(bodyOf(byOwner._id)), 'a webhook of the owner tells it')
  const webhook = automations.find(({ automationType }) => automationType === 'webhook')
  t.match(bodyOf(webhook._id), /C-9/)
  t.notOk(tells(bodyOf(webhook._id)), 'one of the clerk does not')
  const tasks = (await ownerSends('GET', '/tasks?tags=told')) as Json[]
  t.equal(tasks.length, 2)
  const copies = await ownerSends('GET', `/data?dataTypeId=${openTypeId}`)
  t.equal(copies.length, 1)
  const mails = mailTexts(join(service.data, 'mail'))
  if (automations.some(({ automationType }) => automationType === 'notification'))
    t.ok(mails.includes('Told of C-9'), 'the mail is there')
  for (const [what, text] of Object.entries({
    tasks: JSON.stringify(tasks),
    copies: JSON.stringify(copies),
    mails,
    histories: JSON.stringify(await Promise.all(tasks.map(({ _id }) => ownerSends('GET', `/task/${_id}/history`)))),
    previews: JSON.stringify(
      await Promise.all(automations.map(({ _id }) => clerkSends('POST', `/automation/${_id}/test`))),
    ),
  }))
    t.notOk(tells(text), `${what}: ${text.slice(0, 300)}`)
  await socket.heard(
    ({ type, channel, event }) =>
      type === 'event' && channel === 'task' && event.task?.tags?.includes('told') !== false,
  )
  t.notOk(tells(JSON.stringify(socket.messages)), 'the live view')
  socket.close()
  t.ok(clerkId)
  await ownerSends('DELETE', `/data/${dataId}`)
  for (const { _id } of [...automations, byOwner, guessing]) await ownerSends('DELETE', `/automation/${_id}`)
}

const isThere = async (service: Service, { token }: ApiWorld, automationType: string): Promise<boolean> => {
  const body = { name: 'X', event: 'onDataSourceCreated', automationType, automationDetails: {} }
  return (await call(service, 'POST', '/automation', { token, body })).json.code !== 'not_available'
}

const automationDetails = ({ owner, clerkId, openTypeId }: Walk, url: string): { [type: string]: Json } => {
  const { flowId, hubId } = owner.ids
  const task = { title: { ref: 'record.values.number' }, tags: ['told', ...RECORD_REFS] }
  return {
    webhook: { url },
    createTask: { flowId, hubId, task },
    createAndAssignTask: { flowId, hubId, task, assigneeIds: [clerkId] },
    createOrUpdateDataSource: { dataTypeId: openTypeId, values: { id: { ref: 'record._id' }, copy: RECORD_REFS[0] } },
    notification: {
      ...{ channel: 'email', to: clerkId, subject: 'Told of {{record.values.number}}' },
      text: '{{record.values.number}} {{record.values.mobile}} {{record.values.debt}}',
    },
  }
}

/** All mails of a folder as they would be read. */
const mailTexts = (folder: string): string =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .map((name) => readFileSync(join(folder, name), 'utf8').replace(/=\r?\n/g, ''))
    .join('\n')
