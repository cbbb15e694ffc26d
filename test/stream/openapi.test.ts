import { test, type Test } from 'tap'
import { openApiWorld } from '../support/api-world.ts'
import { addressOf, bodyOf, callOnce, headersOf, LEADS_ELSEWHERE, queryOf } from '../support/each-route.ts'
import { faultsOf, operationsOf, schemasOf, type Operation } from '../support/open-api.ts'
import { ask, call, signUp, startService, type Answer } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

const checkAnswer = (t: Test, document: Json, operation: Operation, answer: Answer): void => {
  const { operationId, responses } = operation
  const documented = Object.keys(responses).filter((status) => status.startsWith('2'))
  if (
    !t.ok(documented.includes(String(answer.status)), `${operationId} answers ${documented}`, {
      status: answer.status,
      text: answer.text.slice(0, 300),
    })
  )
    return
  const [type, media] = Object.entries<Json>(responses[answer.status].content)[0]
  if (type !== '*/*')
    t.equal(
      String(answer.headers['content-type']).split(';')[0],
      type.split(';')[0],
      `${operationId}: its content type`,
    )
  if (type.includes('json'))
    t.same(faultsOf(media.schema, answer.json, { document }), [], `${operationId}: as its schema says`)
}

test('every route of the document is there and answers what the document says', { timeout: 900_000 }, async (t) => {
  const service = await startService(
    folderOf(t),
    ['--webhook-schedule', '20ms'],
    0,
    'dist/test/support/few-points-child.js',
  )
  t.teardown(() => service.kill())
  const document = (await call(service, 'GET', '//openapi.json')).json
  const operations = operationsOf(document)
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length, 'operationIds are unique')
  const reads = operations.filter(({ method, isRoot, isPublic }) => method === 'GET' && !isRoot && !isPublic)
  const isOfRows = ({ responses }: Operation): boolean => {
    const data = responses['200'].content['application/json']?.schema.properties?.data
    return (data?.type === 'array' && data.items?.type !== 'string') || data?.properties?._id !== undefined
  }
  t.same(
    reads.filter((one) => isOfRows(one) && !one.query.includes('fields')).map(({ path }) => path),
    [],
    'every list and every read by id takes fields',
  )
  const world = await openApiWorld(service)

  await t.test('what is made again under an id answers without its secret, as the document says', async (t) => {
    const { token } = await signUp(service)
    const { data: roles } = await ask(service, 'GET', '/roles', { token })
    const { _id: roleId } = roles.find(({ key }: Json) => key === 'planner')
    for (const [operationId, path, body, secret] of [
      ['createTracker', '/tracker', { name: 'Van', kind: 'device' }, 'deviceKey'],
      ['createIngestKey', '/ingest-key', { name: 'Fleet' }, 'key'],
      ['createServiceAccount', '/service-account', { name: 'Shop', roleId, hubId: [] }, 'key'],
    ] as const) {
      const operation = operations.find((one) => one.operationId === operationId) as Operation
      const request = { token, body: { ...body, _id: '019a0000-0000-7000-8000-00000000000a' } }
      for (const isFirst of [true, false]) {
        const answer = await call(service, 'POST', path, request)
        t.equal(secret in answer.json.data, isFirst, operationId)
        checkAnswer(t, document, operation, answer)
      }
    }
  })

  await t.test('an unknown query parameter, an unknown member of a body: 400 with its path', async (t) => {
    for (const operation of operations.filter(({ isRoot }) => !isRoot)) {
      const query = [queryOf(operation, world), 'nonsense=1'].filter(Boolean).join('&')
      const unknown = await call(service, operation.method, addressOf(operation, world.ids, query), {
        token: world.token,
        body: bodyOf(operation, world),
        headers: headersOf(operation),
      })
      t.match(
        { status: unknown.status, json: unknown.json },
        { status: 400, json: { code: 'invalid', errors: [{ path: '/nonsense' }] } },
        `${operation.operationId}: the query`,
      )
      const { body: sent } = operation
      if (sent === undefined || !sent.type.includes('json') || operation.operationId === 'importGeofences') continue // a FeatureCollection may carry foreign members
      const body = { ...bodyOf(operation, world), nonsense: 1 }
      const answer = await call(service, operation.method, addressOf(operation, world.ids, queryOf(operation, world)), {
        token: world.token,
        body,
      })
      t.match(
        { status: answer.status, json: answer.json },
        { status: 400, json: { code: 'invalid', errors: [{ path: '/nonsense' }] } },
        `${operation.operationId}: the body`,
      )
    }
  })

  const checkEach = async (t: Test, ofThese: Operation[]): Promise<void> => {
    for (const operation of ofThese.filter(({ operationId }) => !LEADS_ELSEWHERE.includes(operationId))) {
      const answer = await callOnce(service, world, operation)
      checkAnswer(t, document, operation, answer)
    }
  }
  const deletes = operations.filter(({ method }) => method === 'DELETE')
  await t.test('each route but deletes answers as documented', async (t) =>
    checkEach(
      t,
      operations.filter((one) => !deletes.includes(one)),
    ),
  )

  await t.test('the Link of each list is followed', async (t) => {
    const followed = new Set<string>()
    for (const operation of operations.filter(({ method, query }) => method === 'GET' && query.includes('cursor'))) {
      const first = await call(service, 'GET', addressOf(operation, world.ids, 'limit=1'), { token: world.token })
      const link = /^<\/api\/v3(.*)>; rel="next"$/.exec(String(first.headers.link ?? ''))?.[1]
      if (link === undefined) continue
      const next = await call(service, 'GET', link, { token: world.token })
      t.equal(next.status, 200, `${operation.operationId}: its Link`, { text: next.text.slice(0, 300) })
      followed.add(operation.operationId)
    }
    for (const list of ['listTrackers', 'listAutomations', 'listGeofences', 'listLocationHistories'])
      t.ok(followed.has(list), `${list} had a second page`, { followed: [...followed] })
  })

  await t.test('each delete answers as documented', async (t) => checkEach(t, deletes))

  await t.test('what is not documented is not there', async (t) => {
    for (const path of [
      '/nothing',
      '/hub',
      '/auth',
      '/hubs/x/y',
      '//metrics/x',
      '//api/v2/hubs',
      '//web/../package.json',
      '//api/v3',
    ]) {
      const answer = await call(service, 'GET', path, { token: world.token })
      const isKnownPath = path === '/hub'
      t.match(
        { status: answer.status, code: answer.json?.code },
        isKnownPath ? { status: 405, code: 'method_not_allowed' } : { status: 404, code: 'not_found' },
        path,
      )
    }
  })

  await t.test('the document says all that a client needs', async (t) => {
    const headersOf = (operationId: string, status: number): string[] =>
      Object.keys(operations.find((one) => one.operationId === operationId)?.responses[status].headers)
    for (const { operationId, description, parameters } of operations) {
      t.match(
        description,
        /Needs (the permission `\w+\/[\w-]+`|no permission|no token)/,
        `${operationId}: who may call it`,
      )
      for (const parameter of parameters)
        t.ok(parameter.$ref ?? parameter.description, `${operationId}: what ${parameter.name} is`)
    }
    for (const { where, schema, isAnswered } of schemasOf(document)) {
      const says = Object.keys(schema).filter((name) => /^(properties|additionalProperties|\w+Of)$/.test(name))
      if (schema.type === 'object') t.not(says.length, 0, `${where}: what the object holds`)
      if (isAnswered && schema.properties !== undefined && !where.includes('.'))
        t.ok(schema.required, `${where}: what is always there`)
    }
    for (const name of ['Hub', 'NewHub', 'HubPatch', 'HubPage', 'PointRow', 'Transition', 'Trip', 'Session', 'Error'])
      t.ok(document.components.schemas[name], name)
    t.same(headersOf('listHubs', 200), ['X-Request-Id', 'Link'])
    t.same(headersOf('createHub', 201), ['X-Request-Id', 'ETag', 'Waymark-Pending'])
    t.ok(document.components.responses.Error429.headers['Retry-After'])
    t.equal(Object.keys(document.webhooks).length, 10, 'an event is a webhook')
    for (const [name, { post }] of Object.entries<Json>(document.webhooks)) {
      const media = post.requestBody.content['application/json']
      t.same(faultsOf(media.schema, media.example, { document }), [], `${name}: its example`)
    }
    const referenced = new Set([...JSON.stringify(document).matchAll(/"#\/([^"]+)"/g)].map(([, path]) => path))
    for (const path of referenced)
      t.ok(
        path.split('/').reduce((part: Json, step) => part?.[step], document),
        `#/${path} is there`,
      )
  })

  await t.test('each webhook sends what the document says', async (t) => {
    for (const [event, { post }] of Object.entries<Json>(document.webhooks)) {
      const rules = event.startsWith('onGeofence')
        ? { fields: { geofenceGroupId: world.ids.geofenceGroupId } }
        : undefined
      const automationDetails = { url: 'https://example.com/hook' }
      const body = { name: `Sample of ${event}`, event, automationType: 'webhook', automationDetails, rules }
      const { _id } = (await call(service, 'POST', '/automation', { token: world.token, body })).json.data
      const { data } = (await call(service, 'POST', `/automation/${_id}/test`, { token: world.token })).json
      const { schema } = post.requestBody.content['application/json']
      t.same(faultsOf(schema, data.body, { document }), [], `${event}: its body`)
      for (const { name } of post.parameters) t.ok(data.headers[name], `${event}: ${name}`)
    }
  })

  await t.test('a dry run of a notification and requests that do not hold answer what the document says', async (t) => {
    const checked = async (operationId: string, status: number, path: string, more: object): Promise<void> => {
      const { method, responses } = operations.find((one) => one.operationId === operationId) as Operation
      const answer = await call(service, method, path, { token: world.token, ...more })
      const response =
        responses[status].$ref === undefined ? responses[status] : document.components.responses[`Error${status}`]
      t.equal(answer.status, status, operationId, { text: answer.text })
      t.same(faultsOf(response.content['application/json'].schema, answer.json, { document }), [], operationId)
    }
    const chat = { channel: 'chat', to: 'https://chat.example.com/hooks/1', subject: 'New', text: '{{task.title}}' }
    const body = { name: 'Chat', event: 'onTaskCreated', automationType: 'notification', automationDetails: chat }
    const { _id } = (await call(service, 'POST', '/automation', { token: world.token, body })).json.data
    await checked('testAutomation', 200, `/automation/${_id}/test`, { body: {} })
    const task = { flowId: world.ids.flowId, title: 'New', hubId: world.ids.hubId }
    const made = (await call(service, 'POST', '/task', { token: world.token, body: task })).json.data
    await checked('finishTask', 409, `/task/${made._id}/finish`, { body: {} })
    await checked('readFile', 416, `/file/${world.ids.fileId}`, {
      headers: { range: 'bytes=999999-' },
    })
    await checked('switchOrganization', 404, '/auth/switch-organization', {
      body: { organizationId: made._id, password: world.password },
    })
  })

  await t.test('each format of a history has its content type', async (t) => {
    for (const operationId of ['listLocationHistories', 'listGeofenceEvents', 'reportStops']) {
      const operation = operations.find((one) => one.operationId === operationId) as Operation
      const types = Object.keys(operation.responses[200].content)
      const { schema } = operation.parameters.find(({ name }) => name === 'format')
      t.equal(types.length, schema.enum.length)
      for (const format of schema.enum) {
        const query = [queryOf(operation, world), `format=${format}`].filter(Boolean).join('&')
        const answer = await call(service, 'GET', addressOf(operation, world.ids, query), { token: world.token })
        t.ok(types.includes(String(answer.headers['content-type']).split(';')[0]), `${operationId}: ${format}`)
      }
    }
  })

  await t.test('every example fits its schema', async (t) => {
    for (const { operationId, body, responses } of operations) {
      if (body?.type.includes('json'))
        t.same(faultsOf(body.schema, body.example, { document }), [], `${operationId}: the body`)
      for (const [status, response] of Object.entries<Json>(responses)) {
        for (const [type, media] of Object.entries<Json>(response.content ?? {})) {
          if (type === 'application/json')
            t.same(faultsOf(media.schema, media.example, { document }), [], `${operationId}: ${status}`)
        }
      }
    }
  })
})
