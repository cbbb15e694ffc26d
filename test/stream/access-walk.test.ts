import { test, type Test } from 'tap'
import { type AccessWorld, bodyWithHub, openAccessWorld, type Person } from '../support/access-world.ts'
import {
  FILTERS,
  MEMBERS,
  NO_REFERENCES,
  OPEN_FOR_OWN,
  OPERATOR,
  OWN,
  PARAMETERS,
  POINTS,
  PUBLIC,
  REFERENCES,
} from '../support/access-places.ts'
import { addressOf, bodyOf, headersOf, queryOf } from '../support/each-route.ts'
import { folderOf } from '../support/folder-of.ts'
import { type Operation, operationsOf, referencesIn } from '../support/open-api.ts'
import { openSocket } from '../support/open-socket.ts'
import { type Answer, ask, call, type Json, startService, type Service } from '../support/service.ts'

interface Walk extends AccessWorld {
  service: Service
  document: Json
  operations: Operation[]
}

/** The service is opened once: each part of the walk leaves the things of the world as they were. */
test('nobody reaches what is not theirs', { timeout: 900_000 }, async (t) => {
  const data = folderOf(t)
  const service = await startService(data, ['--webhook-schedule', '20ms'], 0, 'dist/test/support/few-points-child.js')
  t.teardown(() => service.kill())
  const document = (await call(service, 'GET', '//openapi.json')).json
  const operations = operationsOf(document)
  const walk: Walk = { ...(await openAccessWorld(service, data, document)), service, document, operations }
  const before = await readAll(walk)
  await t.test('every route has its place', async (t) => places(t, walk))
  await t.test('credentials', async (t) => credentials(t, walk))
  await t.test('ids in paths', async (t) => paths(t, walk))
  await t.test('ids in bodies', async (t) => bodies(t, walk))
  await t.test('lists, filters and sorts', async (t) => lists(t, walk))
  await t.test('ids where no schema names them', async (t) => elsewhere(t, walk))
  await t.test('the live channel', async (t) => liveChannel(t, walk))
  await t.test('the ingest channel', async (t) => ingestChannel(t, walk))
  t.same(await readAll(walk), before, 'all that was refused has changed nothing')
})

const places = (t: Test, { operations, document, world }: Walk): void => {
  const named = operations.map(({ operationId }) => operationId)
  for (const one of [...PUBLIC, ...OPERATOR, ...OWN, ...POINTS]) t.ok(named.includes(one), `${one} is a route`)
  for (const operation of operations) {
    const { operationId, isPublic, params, body } = operation
    t.equal(isPublic, PUBLIC.includes(operationId), `${operationId} is public or not as access-places.ts says`)
    if (isPublic) continue
    for (const name of params) {
      t.ok(PARAMETERS[name], `{${name}} of ${operationId} has a place in PARAMETERS of access-places.ts`)
      const isThere = world.ids[name] ?? world.spare[name]
      if (!['credential', 'none'].includes(PARAMETERS[name]))
        t.ok(isThere, `{${name}} of ${operationId} has something in access-world.ts`)
    }
    for (const pointer of body === undefined ? [] : referencesIn(body.schema, document)) {
      const name = memberOf(pointer)
      t.ok(
        REFERENCES[name] ?? FILTERS[name] ?? NO_REFERENCES[name],
        `${pointer} of ${operationId} has a place in access-places.ts`,
      )
    }
  }
}

/** The last name of a pointer such as `/teamIds/0`. */
const memberOf = (pointer: string): string =>
  pointer
    .split('/')
    .filter((part) => !/^\d*$/.test(part))
    .at(-1) ?? ''

const send = (
  { service, world }: Walk,
  operation: Operation,
  token: string | undefined,
  ids: { [name: string]: string },
  body: Json = bodyOf(operation, { ...world, ids: { ...world.ids, ...ids } }),
): Promise<Answer> => {
  const query = queryOf(operation, { ...world, ids })
  const headers = headersOf(operation)
  return call(service, operation.method, addressOf(operation, ids, query), { token, body, headers })
}

const expectStatus = (t: Test, answer: Answer, status: number, code: string, what: string): void => {
  t.match({ status: answer.status, code: answer.json?.code, text: answer.text }, { status, code }, what)
}

const credentials = async (t: Test, walk: Walk): Promise<void> => {
  const { operations, world, bare, disabled, expired, deviceKey, ingestKey } = walk
  const ids = { ...world.spare, ...world.ids }
  for (const operation of operations) {
    const { operationId } = operation
    if (PUBLIC.includes(operationId) || OPERATOR.includes(operationId)) continue
    for (const [what, token] of Object.entries({ none: undefined, expired, disabled, forged: `${world.token}x` })) {
      const answer = await send(walk, operation, token, ids)
      expectStatus(t, answer, 401, 'unauthenticated', `${operationId}, ${what}`)
      t.match(answer.headers['www-authenticate'], 'Bearer')
    }
    if (POINTS.includes(operationId)) continue
    for (const [what, token] of Object.entries({ deviceKey, ingestKey }))
      expectStatus(t, await send(walk, operation, token, ids), 403, 'forbidden', `${operationId}, ${what}`)
    const isBearer = operation.params.some((name) => PARAMETERS[name] === 'bearer')
    if (OPEN_FOR_OWN.includes(operationId)) {
      const { status, json } = await send(walk, operation, bare, ids)
      t.match(
        { status, data: json?.data },
        status === 404 || status === 204 ? {} : { status: 200, data: [] },
        `${operationId}, one's own`,
      )
      t.notOk(json?.data?.length, operationId)
    } else if (!OWN.includes(operationId) && !isBearer)
      expectStatus(t, await send(walk, operation, bare, ids), 403, 'forbidden', `${operationId}, without permission`)
  }
}

/** One's own things, but for the parameters that name others' things. */
const mixed = ({ world }: Walk, own: Person, names: readonly string[]): { [name: string]: string } => ({
  ...own.ids,
  ...Object.fromEntries(names.map((name) => [name, world.ids[name] ?? world.spare[name]])),
})

const paths = async (t: Test, walk: Walk): Promise<void> => {
  const { operations, outsider, limited } = walk
  const isNamed = (params: readonly string[]) =>
    params.some((name) => !['credential', 'none'].includes(PARAMETERS[name]))
  for (const operation of operations.filter(({ params, isPublic }) => isNamed(params) && !isPublic)) {
    const { operationId, params, method } = operation
    for (const names of params.length > 1 ? [params, ...params.map((name) => [name])] : [params]) {
      const answer = await send(
        walk,
        operation,
        outsider.token,
        mixed(walk, outsider, names),
        bodyOfOwn(walk, operation, outsider),
      )
      expectStatus(t, answer, 404, 'not_found', `${operationId}, an outsider with ${names}`)
    }
    const kind = PARAMETERS[params.at(-1) as string]
    if (kind === 'organization' || kind === 'bearer') continue
    const answer = await send(
      walk,
      operation,
      limited.token,
      mixed(walk, limited, params),
      bodyOfOwn(walk, operation, limited),
    )
    const what = `${operationId}, whoever has another hub`
    if (kind === 'person' && method === 'GET') t.equal(answer.status, 200, what)
    else if (kind === 'person') t.ok([403, 404].includes(answer.status), `${what}: ${answer.text}`)
    else expectStatus(t, answer, 404, 'not_found', what)
  }
}

const bodyOfOwn = ({ world, document }: Walk, operation: Operation, own: Person): Json =>
  bodyWithHub(operation, { ...world, ids: own.ids }, document)

const bodies = async (t: Test, walk: Walk): Promise<void> => {
  const { operations, document, outsider, limited } = walk
  const isJson = (body: Operation['body']): boolean => body !== undefined && !body.type.startsWith('multipart/')
  for (const operation of operations.filter(({ operationId, body }) => isJson(body) && !PUBLIC.includes(operationId))) {
    for (const pointer of referencesIn(operation.body?.schema, document)) {
      const name = memberOf(pointer)
      if (pointer === '/_id') await idTaken(t, walk, operation)
      if (pointer.endsWith('/0/_id') && BULK.test(pointer)) await idTakenAmong(t, walk, operation, pointer)
      const parameter = REFERENCES[name] ?? FILTERS[name]
      if (parameter === undefined) continue
      await reference(t, walk, operation, pointer, outsider)
      if (PARAMETERS[parameter] === 'hub') await reference(t, walk, operation, pointer, limited)
    }
  }
}

/** Nobody makes something in the place of what another organization has. */
const idTaken = async (t: Test, walk: Walk, operation: Operation): Promise<void> => {
  const noun = operation.path
    .replace(/\/invite$/, '')
    .split('/')
    .at(-1) as string
  const param = `${noun.replace(/-(.)/g, (_, letter) => letter.toUpperCase())}Id`
  t.type(walk.world.ids[param], 'string', `an id of ${operation.path}`)
  const { externalId: _external, ...body } = bodyOfOwn(walk, operation, walk.outsider)
  const sent = { ...body, _id: walk.world.ids[param] }
  const answer = await send(walk, operation, walk.outsider.token, walk.outsider.ids, sent)
  t.equal(answer.status, 409, `${operation.operationId}, an outsider with an id that is taken: ${answer.text}`)
}

const idTakenAmong = async (t: Test, walk: Walk, operation: Operation, pointer: string): Promise<void> => {
  const { taskId, scheduleId, dataId } = walk.world.ids
  const id = pointer.startsWith('/tasks') ? taskId : pointer.startsWith('/records') ? dataId : scheduleId
  const body = bodyWith(walk, operation, pointer, id, walk.outsider)
  const { json, text } = await send(walk, operation, walk.outsider.token, walk.outsider.ids, body)
  t.match(json?.data, { rejected: [{ index: 0, code: 'conflict' }] }, text)
}

/** One's own body with one id in it that is another's. */
const reference = async (t: Test, walk: Walk, operation: Operation, pointer: string, own: Person): Promise<void> => {
  const { operationId } = operation
  const name = memberOf(pointer)
  const id = walk.world.ids[REFERENCES[name] ?? FILTERS[name]]
  const sent = bodyWith(walk, operation, pointer, id, own)
  const answer = await send(walk, operation, own.token, own.ids, sent)
  const who = own === walk.outsider ? 'an outsider' : 'whoever has another hub'
  const what = `${operationId} by ${who} with ${pointer} of others: ${answer.text.slice(0, 200)}`
  if (FILTERS[name] !== undefined) return void t.match(answer, { status: 200, json: { data: [] } }, what)
  if (OWN.includes(operationId)) return void t.equal(answer.status, 403, what)
  // Of several bodies in one, those that are good are taken.
  const isBulk = BULK.test(pointer) && operationId !== 'planRoutes'
  if (isBulk || operationId === 'assignTasks') {
    t.equal(answer.status, 200, what)
    t.match(answer.json?.data.rejected, [{ index: 0, code: /^(invalid|not_found)$/ }], what)
    return
  }
  t.match(answer, { status: 400, json: { errors: [{ path: new RegExp(`^${pointer.replace(/\/0$/, '')}`) }] } }, what)
}

const BULK = /^\/(schedules|tasks|records|taskIds)\/0/

/** One's own body, or a patch of the member alone, with an id in it. */
const bodyWith = (walk: Walk, operation: Operation, pointer: string, id: string, own: Person): Json => {
  const body = operation.method === 'PATCH' ? {} : bodyOfOwn(walk, operation, own)
  const key = Object.keys(MEMBERS).find((one) => pointer.endsWith(one))
  const within = key === undefined ? pointer : pointer.slice(0, -key.length) + /^\/[^/]+/.exec(key)?.[0]
  const value = key === undefined ? id : MEMBERS[key](id, own.ids, operation.path)
  return withValue(body, within.slice(1).split('/'), value)
}

/** The value with another one at a pointer; members and items that are missing are made. */
const withValue = (whole: Json, [part, ...rest]: readonly string[], value: unknown): Json => {
  if (part === undefined) return value
  if (part !== '0') return { ...whole, [part]: withValue(whole?.[part], rest, value) }
  return [withValue(whole?.[0], rest, value), ...(whole ?? []).slice(1)]
}

/** Ids in the rules of automations and in queries of writes. */
const elsewhere = async (t: Test, { service, world, outsider, limited }: Walk): Promise<void> => {
  const { geofenceGroupId, roleId, trackerId, hubId } = world.ids
  const automation = (event: string, fields: object) => ({
    ...{ name: 'Spy', event, automationType: 'webhook', rules: { fields } },
    automationDetails: { url: 'http://127.0.0.1:9/closed' },
  })
  const send = (who: Person, method: string, path: string, body?: object) =>
    call(service, method, path, { token: who.token, body })
  const foreign = await send(outsider, 'POST', '/automation', automation('onGeofenceEntry', { geofenceGroupId }))
  t.match(foreign, { status: 400, json: { errors: [{ path: '/rules/fields/geofenceGroupId' }] } }, foreign.text)
  for (const [who, fields] of [
    [outsider, { trackerId }],
    [limited, { trackerId }],
    [limited, { 'tracker.hubId': hubId }],
  ] as const) {
    const { status, json } = await send(who, 'POST', '/automation', automation('onStartTrip', fields))
    const dry = status === 201 ? await send(who, 'POST', `/automation/${json.data._id}/test`) : undefined
    t.notOk(dry?.text.includes(trackerId), `a dry run tells nothing of others: ${dry?.text.slice(0, 300)}`)
  }
  const yards = { type: 'FeatureCollection', features: [] }
  const path = `/geofences/import?geofenceGroupId=${geofenceGroupId}&nameProperty=name`
  t.match((await send(outsider, 'POST', path, yards)).status, /40[04]/, 'an import into a group of others')
  const heir = await send(outsider, 'DELETE', `/role/${outsider.ids.roleId}?replaceWith=${roleId}`)
  t.match(heir, { status: 400, json: { errors: [{ path: '/replaceWith' }] } })
  const switched = { organizationId: world.organizationId, password: world.password }
  t.equal((await send(outsider, 'POST', '/auth/switch-organization', switched)).status, 404)
}

const lists = async (t: Test, walk: Walk): Promise<void> => {
  const { service, operations, world, outsider, limited } = walk
  const all = Object.values(world.ids).filter((id) => id.length > 30)
  const ofHub = Object.keys(world.ids).filter((name) => PARAMETERS[name] === 'hub' && name !== 'hubId')
  const secrets: [string, Person, (operationId: string) => string[]][] = [
    ['an outsider', outsider, () => all],
    // The teams of users are told to everyone who may see users.
    [
      'whoever has another hub',
      limited,
      (operationId) =>
        ofHub.filter((name) => operationId !== 'listUsers' || name !== 'teamId').map((name) => world.ids[name]),
    ],
  ]
  for (const operation of operations.filter(
    ({ method, isPublic, isRoot, operationId }) =>
      method === 'GET' && !isPublic && !isRoot && !OPERATOR.includes(operationId),
  )) {
    const { operationId, parameters, params, query } = operation
    if (params.length > 0 && PARAMETERS[params.at(-1) as string] !== 'organization') continue
    const sorts = (parameters.find(({ name }: Json) => name === 'sortBy')?.schema.enum ?? []).map(
      (name: string) => `sortBy=${name}&sortOrder=desc`,
    )
    const filters = query.filter((name) => REFERENCES[name] !== undefined || world.ids[name] !== undefined)
    for (const [who, own, hidden] of secrets) {
      const needed = queryOf(operation, own)
      const asking = (more: string): string => addressOf(operation, own.ids, [needed, more].filter(Boolean).join('&'))
      for (const question of ['', ...sorts]) {
        const answer = await call(service, 'GET', asking(question), { token: own.token })
        t.equal(answer.status, 200, `${operationId}?${question} by ${who}`)
        for (const id of hidden(operationId))
          if (answer.text.includes(id)) t.fail(`${operationId}?${question} tells ${who} of ${id}`)
      }
      for (const name of filters) {
        const parameter = REFERENCES[name] ?? name
        if (who !== 'an outsider' && PARAMETERS[parameter] !== 'hub') continue
        const answer = await call(service, 'GET', asking(`${name}=${world.ids[parameter]}`), { token: own.token })
        const found = answer.status === 200 ? (answer.json?.data ?? answer.text) : []
        t.same(
          found,
          operationId === 'listUsers' && who !== 'an outsider' ? found : [],
          `${operationId} by ${name} of others finds ${who} nothing`,
        )
      }
    }
  }
}

const point = (more: object = {}): object => ({ recordedAt: Date.now(), lat: 52, lng: 21, ...more })

const liveChannel = async (t: Test, walk: Walk): Promise<void> => {
  const { service, world, outsider, limited, bare, deviceKey, ingestKey, expired, disabled } = walk
  for (const [what, token] of Object.entries({ expired, disabled }))
    t.equal(await (await openSocket(service, 'live', token)).closed, 4401, what)
  for (const [what, token] of Object.entries({ deviceKey, ingestKey }))
    t.equal(await (await openSocket(service, 'live', token)).closed, 4403, what)
  const { trackerId, hubId, teamId } = world.ids
  const channels = ['positions', 'geofence', 'trip', 'task', 'notification', 'automation', 'job']
  const questions = [
    {},
    { trackerIds: [trackerId] },
    { hubId },
    { teamId },
    { bbox: [-180, -90, 180, 90] },
    { since: 'AA' },
  ]
  for (const [what, token, own] of [
    ['an outsider', outsider.token, outsider],
    ['whoever has another hub', limited.token, limited],
    ['without permission', bare, undefined],
  ] as const) {
    const socket = await openSocket(service, 'live', token)
    for (const [i, question] of questions.entries())
      socket.send({ type: 'subscribe', id: `s${i}`, channels, ...question })
    for (let i = 0; i < questions.length; i++)
      await socket.heard(({ type, id }) => type !== 'ready' && (id === `s${i}` || type === 'error'))
    await ask(service, 'POST', '/location-history/bulk', {
      token: deviceKey,
      body: { points: [point({ trip: 'start' })] },
    })
    const taskId = await changedTask(service, world, 'One')
    if (own !== undefined) {
      const { data } = await ask(service, 'POST', `/tracker/${own.ids.trackerId}/rotate-key`, { token: own.token })
      const { accepted } = (
        await ask(service, 'POST', '/location-history/bulk', {
          token: data.deviceKey,
          body: { points: [point({ lat: 10 })] },
        })
      ).data
      t.equal(accepted, 1)
      // What was sent after theirs is here: theirs would be too.
      const ownTaskId = await changedTask(service, own, 'Deliver')
      await socket.heard(({ channel, event }) => channel === 'task' && event._id === ownTaskId && event.gone)
      await socket.heard(({ type, positions }) => type === 'positions' && positions?.length > 0)
    }
    const text = JSON.stringify(socket.messages)
    for (const id of [trackerId, world.ids.geofenceId, world.ids.runId, taskId])
      t.notOk(text.includes(id), `${what} hears nothing of ${id}: ${text.slice(0, 400)}`)
    t.notOk(text.includes('One is there'), `${what} hears nothing of what others are told`)
    socket.close()
  }
}

/** Makes a task, changes it, and deletes it. Of one called `One` its owner is told in the application (api-world.ts). */
const changedTask = async (
  service: Service,
  { token, ids: { flowId, hubId } }: Pick<Person, 'token' | 'ids'>,
  title: string,
) => {
  const body = { flowId, hubId, title }
  const { _id } = (await ask(service, 'POST', '/task', { token, body })).data
  await ask(service, 'PATCH', `/task/${_id}`, { token, body: { priority: 1 } })
  await ask(service, 'DELETE', `/task/${_id}`, { token })
  return _id as string
}

const ingestChannel = async (t: Test, walk: Walk): Promise<void> => {
  const { service, world, outsider, limited, deviceKey, ingestKey, expired, disabled } = walk
  for (const [what, token] of Object.entries({ expired, disabled, forged: `${ingestKey}x` }))
    t.equal(await (await openSocket(service, 'ingest', token)).closed, 4401, what)
  const { key } = (await ask(service, 'POST', '/ingest-key', { token: outsider.token, body: { name: 'Mine' } })).data
  const ofHub = { name: 'Mine', hubId: limited.ids.hubId, autoCreate: true }
  const hubKey = (await ask(service, 'POST', '/ingest-key', { token: limited.token, body: ofHub })).data.key
  const trackerId = world.ids.trackerId
  const codes = {
    [key]: 'unknown_tracker',
    [hubKey]: 'forbidden_tracker',
    [outsider.token]: 'forbidden_tracker',
    [limited.token]: 'forbidden_tracker',
    [deviceKey]: undefined,
    [ingestKey]: undefined,
  }
  for (const [token, code] of Object.entries(codes)) {
    const names = code === undefined ? [{ trackerId }] : [{ trackerId }, { externalId: 'bus-1' }]
    const points = names.map((name) => point(name))
    const answer = (await ask(service, 'POST', '/location-history/bulk', { token, body: { points } })).data
    const isFree = token === key
    t.match(
      answer.rejected,
      code === undefined
        ? []
        : [
            { index: 0, code },
            { index: 1, ...(isFree ? {} : { code }) },
          ],
    )
    const socket = await openSocket(service, 'ingest', token)
    await socket.heard(({ type }) => type === 'ready')
    socket.send({ type: 'points', seq: 1, points: [point({ trackerId })] })
    await socket.heard(({ type, seq }) => type === 'ack' && seq === 1)
    const rejects = socket.messages.filter(({ type }) => type === 'reject')
    t.match(rejects, code === undefined ? [] : [{ rejected: [{ index: 0, code }] }])
    socket.close()
  }
}

/** Every thing of the world, as its owner reads it. */
const readAll = async ({ service, world, operations }: Walk): Promise<{ [operationId: string]: Json }> => {
  const read: { [operationId: string]: Json } = {}
  const reads = operations.filter(
    ({ method, params, path, isPublic }) => method === 'GET' && params.length > 0 && path.endsWith('}') && !isPublic,
  )
  for (const operation of reads) {
    const { status, json } = await call(service, 'GET', addressOf(operation, world.ids), { token: world.token })
    const { lastSeenAt: _seen, status: _status, points: _points, trip: _trip, ...data } = json?.data ?? {}
    read[operation.operationId] = { status, data }
  }
  return read
}
