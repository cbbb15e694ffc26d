import { Webhook } from 'standardwebhooks'
import { test } from 'tap'
import { eventDataSchema } from '../../../src/features/automations/event-table.ts'
import { automationStream, EVENT_DATA_TYPES, type AutomationEvent } from '../../../src/features/automations/events.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { faultsOf } from '../../support/open-api.ts'
import {
  entry,
  GROUP,
  GROUPS,
  openHook,
  openWorld,
  ORG,
  owner,
  trackerId,
  webhookBody,
} from '../../reactors/dispatch/world.ts'
import { until } from '../../support/service.ts'

const URL_OK = 'https://example.com/hook'

test('an automation is created, read, listed, changed and deleted', async (t) => {
  const { call, log } = await openWorld(t)
  const made = await call('POST', '/automation', { caller: owner, body: webhookBody(URL_OK) })
  t.equal(made.status, 201)
  const { _id, automationDetails } = made.body.data
  t.match(automationDetails.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.match(made.body.data, {
    organizationId: ORG,
    name: 'Hook',
    event: 'onGeofenceEntry',
    dataType: 'locationHistory',
    automationType: 'webhook',
    isActive: true,
    version: 1,
    automationDetails: { url: URL_OK, headers: [{ key: 'x-event', value: '***' }] },
    rules: {
      fields: { geofenceGroupId: GROUP },
      schema: { type: 'object', properties: { geofenceGroupId: { const: GROUP } }, required: ['geofenceGroupId'] },
    },
  })
  const read = await call('GET', `/automation/${_id}`, { caller: owner })
  t.notOk('secret' in read.body.data.automationDetails)
  for (const hidden of ['secret', 'details', 'trigger', 'editorId']) t.notOk(hidden in read.body.data, hidden)
  const list = await call('GET', '/automations?event=onGeofenceEntry&isActive=true&q=hook&sortBy=name', {
    caller: owner,
  })
  t.match(list.body, { total: 1, data: [{ _id }] })
  t.notOk(JSON.stringify(list.body).includes('whsec_'))

  const back = await call('PUT', `/automation/${_id}`, { caller: owner, body: { ...made.body.data } })
  t.match(back.body.data, { version: 1 }, 'writing back what was answered changes nothing')
  const put = await call('PUT', `/automation/${_id}`, {
    caller: owner,
    body: { ...read.body.data, name: 'Other', isActive: undefined },
  })
  t.match(put.body.data, { name: 'Other', isActive: true, version: 2 })
  const patch = await call('PATCH', `/automation/${_id}`, {
    caller: owner,
    body: { isActive: false, automationDetails: { headers: { 'x-a': 'b' } }, version: 2 },
  })
  t.match(patch.body.data, {
    isActive: false,
    version: 3,
    automationDetails: { url: URL_OK, headers: [{ key: 'x-a', value: '***' }] },
  })
  const stale = await call('PATCH', `/automation/${_id}`, {
    caller: owner,
    body: { name: 'x' },
    headers: { 'if-match': '"2"' },
  })
  t.match(stale, { status: 409, body: { code: 'stale_version', version: 3 } })
  const event = await call('PATCH', `/automation/${_id}`, {
    caller: owner,
    body: { event: 'onTaskCreated', rules: null },
  })
  t.match(event.body.data, { event: 'onTaskCreated', dataType: 'task', rules: { fields: {} } })
  const without = await call('PATCH', `/automation/${_id}`, { caller: owner, body: { event: 'onGeofenceLeave' } })
  t.match(
    without,
    { status: 400, body: { errors: [{ path: '/rules/fields/geofenceGroupId' }] } },
    'the merged result is judged',
  )

  const stream = JSON.stringify(
    (await log.read(automationStream(_id), 0, 100)).map(({ data }) => Buffer.from(data).toString()),
  )
  t.notMatch(stream, /whsec_|example\.com|x-event/, 'nothing secret is in the log in clear')
  t.equal((await call('DELETE', `/automation/${_id}`, { caller: owner })).status, 200)
  t.equal((await call('GET', `/automation/${_id}`, { caller: owner })).status, 404)
  t.equal((await call('PATCH', `/automation/${_id}`, { caller: owner, body: { name: 'x' } })).status, 404)
})

test('what is refused, and where', async (t) => {
  const { call } = await openWorld(t, { allow: [] })
  const body = webhookBody(URL_OK)
  const rule = (path: string) => ({ rules: { fields: { geofenceGroupId: GROUP, [path]: 1 } } })
  const task = (event: string, path: string) => ({ event, rules: { fields: { [path]: 1 } } })
  const details = (url: string, headers: unknown = []) => ({ automationDetails: { url, headers } })
  const cases: [string, object, string, string?][] = [
    ['an unknown event', { event: 'onFullMoon' }, '/event'],
    ['an event that is missing', { event: undefined }, '/event'],
    ['a name that is missing', { name: undefined }, '/name'],
    ['a type that is missing', { automationType: undefined }, '/automationType'],
    ['an unknown type', { automationType: 'dance' }, '/automationType'],
    ['another type for a geofence event', { automationType: 'createTask' }, '/automationType', 'invalid'],
    [
      'a type that does not exist yet',
      { event: 'onTaskCreated', automationType: 'createTask' },
      '/automationType',
      'not_available',
    ],
    ['a type that needs a task', { event: 'onStartTrip', automationType: 'updateTask' }, '/automationType', 'invalid'],
    ['another data type', { dataType: 'task' }, '/dataType'],
    ['no group', { rules: { fields: {} } }, '/rules/fields/geofenceGroupId'],
    [
      'a group of 501 bytes',
      { rules: { fields: { geofenceGroupId: 'x'.repeat(501) } } },
      '/rules/fields/geofenceGroupId',
    ],
    ['no rules', { rules: undefined }, '/rules/fields/geofenceGroupId'],
    [
      'a group that is no text',
      { rules: { fields: { geofenceGroupId: { enum: [GROUP] } } } },
      '/rules/fields/geofenceGroupId',
    ],
    [
      'an unknown group',
      { rules: { fields: { geofenceGroupId: '0190f3a2-0000-7000-8000-00000000dead' } } },
      '/rules/fields/geofenceGroupId',
    ],
    ['no details', { automationDetails: undefined }, '/automationDetails'],
    ['no url', { automationDetails: {} }, '/automationDetails/url'],
    ['a secret of its own', { automationDetails: { url: URL_OK, secret: 'whsec_x' } }, '/automationDetails/secret'],
    ['ftp', details('ftp://example.com'), '/automationDetails/url'],
    ['loopback', details('http://127.0.0.1/x'), '/automationDetails/url'],
    ['loopback in decimal', details('http://2130706433/'), '/automationDetails/url'],
    ['loopback in octal', details('http://0177.0.0.1/'), '/automationDetails/url'],
    ['loopback as IPv6', details('http://[::ffff:127.0.0.1]/'), '/automationDetails/url'],
    ['loopback with a dot', details('http://127.0.0.1./'), '/automationDetails/url'],
    ['metadata', details('http://169.254.169.254/latest'), '/automationDetails/url'],
    ['a header of the connection', details(URL_OK, [{ key: 'Host', value: 'x' }]), '/automationDetails/headers/0/key'],
    ['a header that is no name', details(URL_OK, [{ key: 'a b', value: 'x' }]), '/automationDetails/headers/0/key'],
    ['a header with a line break', details(URL_OK, { 'x-a': 'a\r\nb: c' }), '/automationDetails/headers/x-a/value'],
    ['an unknown field', { nmae: 'x' }, '/nmae'],
    [
      'a schema with a reference',
      { rules: { fields: { geofenceGroupId: GROUP, at: { $ref: 'https://example.com/schema' } } } },
      '/rules/fields/at',
    ],
    [
      'a schema that is none',
      { rules: { fields: { geofenceGroupId: GROUP, at: { type: 'nonsense' } } } },
      '/rules/fields/at',
    ],
    ['a rule on what the event has not', rule('tracker.nmae'), '/rules/fields/tracker.nmae'],
    ['a rule on where the geofence is', rule('geofence.geometry.type'), '/rules/fields/geofence.geometry.type'],
    ['a rule below a text', rule('tracker.name.length'), '/rules/fields/tracker.name.length'],
    ['a rule on the prototype', rule('tracker.constructor'), '/rules/fields/tracker.constructor'],
    ['a rule on what another event has', rule('trip.distance'), '/rules/fields/trip.distance'],
    ['a rule on a state before', rule('old.tracker.name'), '/rules/fields/old.tracker.name'],
    [
      'a group for a trip',
      { event: 'onStartTrip', rules: { fields: { geofenceGroupId: GROUP } } },
      '/rules/fields/geofenceGroupId',
    ],
    ['a state before the first', { ...task('onTaskCreated', 'old.task.state') }, '/rules/fields/old.task.state'],
    [
      'a pattern that looks ahead',
      { rules: { fields: { geofenceGroupId: GROUP, at: { pattern: '(?=a)b' } } } },
      '/rules/fields/at',
    ],
  ]
  for (const [what, change, path, code = 'invalid'] of cases) {
    const answer = await call('POST', '/automation', {
      caller: owner,
      body: JSON.parse(JSON.stringify({ ...body, ...change })),
    })
    t.equal(answer.status, 400, what)
    t.match(answer.body, { code, errors: [{ path }] }, what)
  }
})

test('permissions, tenancy and the rollout', async (t) => {
  const world = await openWorld(t)
  const made = await world.call('POST', '/automation', { caller: owner, body: webhookBody('http://127.0.0.1:9/') })
  const { _id } = made.body.data
  const viewer = { ...owner, permissions: new Set(['view/automation']) }
  t.equal(
    (await world.call('POST', '/automation', { caller: viewer, body: webhookBody('http://127.0.0.1:9/') })).status,
    403,
  )
  t.equal((await world.call('DELETE', `/automation/${_id}`, { caller: viewer })).status, 403)
  t.equal((await world.call('GET', `/automation/${_id}`, { caller: viewer })).status, 200)
  const stranger = { ...owner, organizationId: 'other' }
  for (const [method, path, body] of [
    ['GET', ''],
    ['DELETE', ''],
    ['PATCH', '', { name: 'x' }],
    ['POST', '/test'],
    ['POST', '/rotate-secret'],
  ] as const) {
    t.equal(
      (await world.call(method, `/automation/${_id}${path}`, { caller: stranger, body })).status,
      404,
      `${method} ${path}`,
    )
  }
  t.match((await world.call('GET', '/automations', { caller: stranger })).body, { data: [], total: 0 })
  world.known.isRolledOut = false
  t.match(await world.call('POST', '/automation', { caller: owner, body: webhookBody('http://127.0.0.1:9/') }), {
    status: 400,
    body: { errors: [{ path: '/event' }] },
  })
})

test('a create with an id is repeated without another secret', async (t) => {
  const { call } = await openWorld(t)
  const body = { ...webhookBody(URL_OK), _id: '0190f3a2-0000-7000-8000-00000000beef' }
  const first = await call('POST', '/automation', { caller: owner, body })
  const again = await call('POST', '/automation', { caller: owner, body })
  t.equal(again.status, 201)
  t.equal(again.body.data._id, first.body.data._id)
  t.notOk('secret' in again.body.data.automationDetails)
  t.equal((await call('POST', '/automation', { caller: owner, body: { ...body, name: 'Another' } })).status, 409)
})

test('a secret is told again to a repeat whose answer was lost, and to nobody else', async (t) => {
  const world = await openWorld(t)
  const [one, two, three] = [1, 2, 3].map((n) => Buffer.alloc(32, n))
  const body = { ...webhookBody(URL_OK), _id: idFrom('automation', 'told') }
  const make = async (seed: Buffer) =>
    (await world.call('POST', '/automation', { caller: owner, body, seed })).body.data
  const made = await make(one)
  t.match(made.automationDetails.secret, /^whsec_/)
  t.same(await make(one), made)
  t.notOk('secret' in (await make(two)).automationDetails)
  const rotate = (seed: Buffer) => world.call('POST', `/automation/${made._id}/rotate-secret`, { caller: owner, seed })
  const rotated = await rotate(two)
  t.same((await rotate(two)).body, rotated.body, 'it is not replaced twice: the one before still signs')
  t.equal((await rotate(three)).status, 200)
  t.match(await rotate(two), { status: 409, body: { code: 'conflict' } })
  t.equal((await world.log.read(automationStream(made._id), 0, 10)).length, 3)
})

test('a dry run shows the signed request and sends nothing; both secrets sign after a rotation', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const made = await world.webhook(hook, { rules: { fields: { geofenceGroupId: GROUP }, schema: { any: 'thing' } } })
  const dry = await world.call('POST', `/automation/${made._id}/test`, { caller: owner })
  t.match(dry.body.data, {
    isSent: false,
    url: hook.url,
    headers: { 'x-event': '***', 'content-type': 'application/json' },
    body: { type: 'onGeofenceEntry', data: { automationId: made._id, geofenceGroupId: GROUP } },
  })
  t.equal(hook.seen.length, 0)
  const rotated = await world.call('POST', `/automation/${made._id}/rotate-secret`, { caller: owner })
  t.equal(rotated.status, 200)
  const { secret } = rotated.body.data.automationDetails
  const signaturesOf = async () => {
    const { headers, body } = (await world.call('POST', `/automation/${made._id}/test`, { caller: owner })).body.data
    const sign = (key: string) =>
      new Webhook(key).sign(
        headers['webhook-id'],
        new Date(Number(headers['webhook-timestamp']) * 1000),
        JSON.stringify(body),
      )
    return {
      sent: headers['webhook-signature'].split(' '),
      next: sign(secret),
      last: sign(made.automationDetails.secret),
    }
  }
  const during = await signaturesOf()
  t.same(during.sent, [during.next, during.last])
  world.clock.advance(24 * 3_600_000)
  const after = await signaturesOf()
  t.same(after.sent, [after.next])
})

test('configured headers come after the standard ones and override none', async (t) => {
  const world = await openWorld(t)
  const headers = {
    'Webhook-Id': 'mine',
    'webhook-signature': 'v1,x',
    'Content-Type': 'text/plain',
    'user-agent': 'Own/1',
    'X-Key': 'k',
  }
  const { body } = await world.call('POST', '/automation', {
    caller: owner,
    body: { ...webhookBody(URL_OK), automationDetails: { url: URL_OK, headers } },
  })
  const dry = await world.call('POST', `/automation/${body.data._id}/test`, { caller: owner })
  t.match(dry.body.data.headers, { 'content-type': 'application/json', 'user-agent': '***', 'X-Key': '***' })
  t.notMatch(dry.body.data.headers['webhook-id'], /mine/)
  t.notOk('Webhook-Id' in dry.body.data.headers)
})

test('each event can be stored for webhooks, and its dry run fits the schema that rules are checked by', async (t) => {
  const { call, resources } = await openWorld(t)
  for (const [event, dataType] of Object.entries(EVENT_DATA_TYPES)) {
    const rules = event.startsWith('onGeofence') ? { fields: { geofenceGroupId: GROUP } } : undefined
    const answer = await call('POST', '/automation', {
      caller: owner,
      body: { name: 'x', event, automationType: 'webhook', automationDetails: { url: URL_OK }, rules },
    })
    t.match(answer, { status: 201, body: { data: { dataType } } })
    const dry = await call('POST', `/automation/${answer.body.data._id}/test`, { caller: owner })
    const { automationId, sequence, ...data } = dry.body.data.body.data
    t.match({ type: dry.body.data.body.type, automationId, sequence }, { type: event, sequence: 1 })
    t.same(faultsOf(eventDataSchema(resources, event as AutomationEvent), data), [], event)
  }
})

test('the log lists runs by automation, status and time', async (t) => {
  const { call } = await openWorld(t)
  t.match(
    (await call('GET', '/automation-log?from=2026-01-01T00:00:00Z&to=1900000000000&status=dead', { caller: owner }))
      .body,
    { data: [], nextCursor: null },
  )
  t.equal((await call('GET', '/automation-log?from=soon', { caller: owner })).status, 400)
  t.equal((await call('GET', '/automation-log?state=dead', { caller: owner })).status, 400)
})

test('the log has runs of trackers that the caller sees, and walks on when it sees more', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const { known, clock, call } = world
  for (const [n, hub] of [
    [1, 'north'],
    [2, 'south'],
    [3, 'north'],
  ] as const)
    known.hubIds.set(trackerId(n), [hub])
  await world.webhook(hook)
  await world.decide([1, 2, 3].map((n) => entry(clock.now() + n, n)))
  await until('all runs', async () => (await world.runs()).filter(({ status }) => status === 'succeeded').length === 3)
  const north = { ...owner, hubIds: ['north'], roleKey: undefined }
  const seenBy = async (caller: typeof owner, query = '') =>
    (await call('GET', `/automation-log${query}`, { caller })).body.data.map(
      (run: { trackerId: string }) => run.trackerId,
    )
  t.same((await seenBy(owner)).sort(), [1, 2, 3].map(trackerId))
  t.same((await seenBy(north)).sort(), [1, 3].map(trackerId))
  t.same(await seenBy({ ...north, hubIds: [] }), [])
  t.same((await seenBy(north, '?event=onGeofenceEntry')).sort(), [1, 3].map(trackerId))
  t.same(await seenBy(owner, '?event=onGeofenceLeave'), [])
  t.equal((await call('GET', '/automation-log?event=onLunch', { caller: owner })).status, 400)
  t.same(await seenBy(owner, `?trackerId=${trackerId(2)}`), [trackerId(2)])
  t.same(await seenBy(north, `?trackerId=${trackerId(2)}`), [])
  const [{ automationId }] = await world.runs()
  const ids = (await world.runs()).map(({ _id }) => _id).join()
  t.same((await seenBy(owner, `?_id=${ids}`)).sort(), [1, 2, 3].map(trackerId))
  t.same((await seenBy(north, `?_id=${ids}`)).sort(), [1, 3].map(trackerId))
  t.equal((await call('GET', '/automation-log?_id=mine', { caller: owner })).status, 400)
  for (const caller of [owner, north])
    t.same(
      await seenBy(caller, `?trackerId=${trackerId(1).toUpperCase()}&automationId=${automationId.toUpperCase()}`),
      [trackerId(1)],
      'ids in any case',
    )
  const point = { _id: `${trackerId(2)}.${(clock.now() + 2).toString(36)}`, trackerId: trackerId(2) }
  t.match(
    (await call('GET', `/automation-log?trackerId=${trackerId(2)}`, { caller: owner })).body.data,
    [{ point }],
    'the point is a row of history',
  )
  const both = `?trackerId=${trackerId(1)}&trackerId=${trackerId(2)}`
  t.same((await seenBy(owner, both)).sort(), [trackerId(1), trackerId(2)].sort(), 'several')
  t.same(await seenBy(north, both), [trackerId(1)], 'of several those that the caller sees')
  t.same(await seenBy(owner, `${both}&status=dead,skipped`), [])
  t.equal((await call('GET', '/automation-log?automationId=mine', { caller: owner })).status, 400)

  const hidden = (await world.runs()).find((run) => run.subjectId === trackerId(2))
  t.equal((await call('POST', `/automation-log/${hidden?._id}/retry`, { caller: north })).status, 404)
  t.equal((await call('POST', `/automation-log/${hidden?._id}/retry`, { caller: owner })).status, 200)

  const first = (await call('GET', '/automation-log?limit=1', { caller: north })).body
  known.hubIds.set(trackerId(4), ['north'])
  const second = await call('GET', `/automation-log?limit=1&cursor=${first.nextCursor}`, { caller: north })
  t.match(second, { status: 200, body: { nextCursor: null } }, 'a tracker that came into sight does not end the walk')
  t.not(second.body.data[0]._id, first.data[0]._id)
})

test('a run is read by its id, and the Link of the log is followed, filters and all', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const { clock, call, known } = world
  known.hubIds.set(trackerId(2), ['south'])
  const { _id } = await world.webhook(hook)
  const begun = clock.now()
  await world.decide([1, 2, 3].map((n) => entry(clock.now() + n, n)))
  await until('all runs', async () => (await world.runs()).filter(({ status }) => status === 'succeeded').length === 3)

  const query = `automationId=${_id}&status=succeeded&from=${begun}&to=${clock.now() + 10}`
  const ids: string[] = []
  for (let path: string | undefined = `/automation-log?limit=1&${query}`; path !== undefined; ) {
    const page = await call('GET', path, { caller: owner })
    t.equal(page.status, 200, path)
    ids.push(...page.body.data.map((run: { _id: string }) => run._id))
    path = /^<\/api\/v3(.*)>; rel="next"$/.exec(page.headers.link ?? '')?.[1]
  }
  t.same(ids.sort(), hook.ids().sort())

  const one = await call('GET', `/automation-log/${ids[0].toUpperCase()}`, { caller: owner })
  t.match(one, { status: 200, body: { data: { _id: ids[0], status: 'succeeded', attempts: [{ statusCode: 204 }] } } })
  t.same((await call('GET', `/automation-log/${ids[0]}?fields=status`, { caller: owner })).body.data, {
    _id: ids[0],
    status: 'succeeded',
  })
  const south = (await world.runs()).find((run) => run.subjectId === trackerId(2))?._id
  const north = { ...owner, hubIds: ['north'], roleKey: undefined }
  for (const caller of [north, { ...owner, organizationId: 'other' }])
    t.equal((await call('GET', `/automation-log/${south}`, { caller })).status, 404)
})

test('the choices that a message names end with the last one', async (t) => {
  const { call } = await openWorld(t)
  const { body } = await call('POST', '/automation', { caller: owner, body: webhookBody(URL_OK) })
  for (const [field, last] of [
    ['event', 'onGeofenceLeave'],
    ['automationType', 'notification'],
  ]) {
    const answer = await call('PATCH', `/automation/${body.data._id}`, { caller: owner, body: { [field]: 'x' } })
    t.match(answer.body.errors, [{ path: `/${field}`, message: new RegExp(`^must be one of .*, ${last}$`) }])
  }
})

test('values of headers are never answered, and *** sent back keeps them', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const { call, log } = world
  const headers = [
    { key: 'Authorization', value: 'Bearer s3cret' },
    { key: 'x-a', value: 'one' },
    { key: 'X-A', value: 'two' },
  ]
  const made = await world.webhook(hook, { automationDetails: { url: hook.url, headers } })
  const answers = [
    made,
    await call('GET', `/automation/${made._id}`, { caller: owner }),
    await call('GET', '/automations', { caller: owner }),
    await call('POST', `/automation/${made._id}/test`, { caller: owner }),
    await call('POST', `/automation/${made._id}/rotate-secret`, { caller: owner }),
  ]
  for (const answer of answers) t.notMatch(JSON.stringify(answer), /s3cret|"one"|"two"/)

  const patch = async (details: object) =>
    call('PATCH', `/automation/${made._id}`, { caller: owner, body: { automationDetails: details } })
  const { secret: _secret, ...read } = made.automationDetails
  t.match(await patch(read), { status: 200, body: { data: { version: 2 } } }, 'writing back changes nothing')
  t.equal((await patch({ headers: { AUTHORIZATION: '***', 'x-a': 'new' } })).status, 200)
  await world.decide([entry(world.clock.now())])
  await until('the delivery', () => hook.seen.length === 1)
  t.match(hook.seen[0].headers, { authorization: 'Bearer s3cret', 'x-a': 'new' })
  for (const [fault, path] of [
    [[{ key: 'x-b', value: '***' }], '/automationDetails/headers/0/value'],
    [{ Authorization: '***', authorization: '***' }, '/automationDetails/headers/authorization/value'],
  ] as const)
    t.match(await patch({ headers: fault }), { status: 400, body: { errors: [{ path }] } })
  const create = await call('POST', '/automation', {
    caller: owner,
    body: { ...webhookBody(hook.url), automationDetails: { url: hook.url, headers: { a: '***' } } },
  })
  t.equal(create.status, 400)
  const stream = (await log.read(automationStream(made._id), 0, 100)).map(({ data }) => Buffer.from(data).toString())
  t.notMatch(stream.join(), /s3cret/, 'the log has them encrypted')
  t.notMatch(JSON.stringify(world.lines), /s3cret/)
})

test('rules name what the event has', async (t) => {
  const { call } = await openWorld(t)
  for (const [event, ...paths] of [
    ['onGeofenceEntry', 'tracker.name', 'tracker.status', 'user.teamIds.0', 'geofence.attributes.dock.gate', 'cause'],
    ['onGeofenceLeave', 'point.speed', 'point.attributes.door', 'geofence.name', 'geofenceId', 'at'],
    ['onFinishTrip', 'trip.distance', 'tracker.vehicleId', 'organizationId'],
    ['onTaskAssigned', 'task.title', 'task.components.parcels', 'old.task.state', 'before.hubId', 'task.tags.0'],
    ['onDataSourceCreated', 'record.values.kind', 'dataType.name'],
    ['onRoutingResultFinished', 'routingResult.hubId', 'routingResult.routes.0.visits.0.taskId'],
  ]) {
    const group = event.startsWith('onGeofence') ? { geofenceGroupId: GROUP } : {}
    const fields = { ...group, ...Object.fromEntries(paths.map((path) => [path, { type: 'string' }])) }
    const { status, body } = await call('POST', '/automation', {
      caller: owner,
      body: { name: 'x', event, automationType: 'webhook', automationDetails: { url: URL_OK }, rules: { fields } },
    })
    t.equal(status, 201, `${event}: ${body.message}`)
  }
})

test('an automation that cannot fire says why, and can be amended and deactivated', async (t) => {
  const world = await openWorld(t)
  const { call, known, tables } = world
  const made = await call('POST', '/automation', { caller: owner, body: webhookBody('http://127.0.0.1:9/') })
  const path = `/automation/${made.body.data._id}`
  t.notOk('notice' in made.body.data)
  const amend = async (body: object) => call('PATCH', path, { caller: owner, body })
  const reason = async () => {
    const read = (await call('GET', path, { caller: owner })).body.data.notice
    const [listed] = (await call('GET', '/automations', { caller: owner })).body.data
    t.same(listed.notice, read)
    return read?.reason
  }
  const fails = async (expected: string, begin: () => unknown, end: () => unknown) => {
    await begin()
    t.equal(await reason(), expected)
    for (const body of [{ name: expected }, { isActive: false }])
      t.equal((await amend(body)).status, 200, `${expected}: ${Object.keys(body)}`)
    if (expected === 'groupGone' || expected === 'notRolledOut')
      t.equal((await amend({ isActive: true })).status, 400, `${expected}: it is not activated`)
    await end()
    t.equal((await amend({ isActive: true })).status, 200)
    t.equal(await reason(), undefined)
  }
  const group = (row: { _id: string } | null) => tables.commit([{ table: GROUPS, scope: ORG, id: GROUP, row }])
  await fails(
    'groupGone',
    () => group(null),
    () => group({ _id: GROUP }),
  )
  await fails(
    'notRolledOut',
    () => (known.isRolledOut = false),
    () => (known.isRolledOut = true),
  )
  const editor = (change: Partial<typeof owner> | undefined) => () =>
    change === undefined ? known.editors.delete('u1') : known.editors.set('u1', { ...owner, ...change })
  await fails('editorGone', editor(undefined), editor({}))
  await fails('editorLacksPermission', editor({ permissions: new Set(['edit/automation']) }), editor({}))
  await fails('editorLacksHubs', editor({ hubIds: [] }), editor({}))
})
