import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { addressOf } from '../support/each-route.ts'
import { type Operation, operationsOf } from '../support/open-api.ts'
import { type Answer, call, startService, until } from '../support/service.ts'

const MANY = '100000'

const open = async (t: Test, flags: readonly string[]) => {
  const service = await startService(folderOf(t), ['--trusted-proxies', '127.0.0.0/8', ...flags])
  t.teardown(() => service.kill())
  let addresses = 0
  /** From an address of its own, unless one is named. */
  const from = (method: string, path: string, options: { token?: string; body?: object; address?: string } = {}) => {
    const { address = `10.1.${addresses >> 8}.${addresses++ & 255}`, ...rest } = options
    return call(service, method, path, { ...rest, headers: { 'x-forwarded-for': address } })
  }
  const person = { email: 'ada@example.com', password: 'Correct-horse-9-battery' }
  const hub = { organizationName: 'Green', hubName: 'Main', hubLat: 52, hubLng: 21 }
  const { token } = (await from('POST', '/auth/signup', { body: { name: 'Ada', ...person, ...hub } })).json
  const operations = operationsOf((await from('GET', '//openapi.json')).json)
  const each = (operation: Operation, options: { token?: string; address?: string }): Promise<Answer> =>
    from(operation.method, addressOf(operation, {}), options)
  return { service, person, token: token as string, operations, from, each }
}

/** Operators come with no token of a user, but from this machine. */
const asksForUser = ({ isPublic, operationId }: Operation): boolean => !isPublic && operationId !== 'readMetrics'

/** A call of theirs that is let through ends the token that it came with. */
const endsToken = ({ operationId }: Operation): boolean => ['refreshToken', 'logout'].includes(operationId)

const policiesOf = ({ headers }: Answer): { policy?: string; left?: string } => {
  const names = (value: unknown): string | undefined =>
    value === undefined ? undefined : String(value).replace(/;[^,]*/g, '')
  return { policy: names(headers['ratelimit-policy']), left: names(headers.ratelimit) }
}

test('every route says what is left of its limits', { timeout: 900_000 }, async (t) => {
  const flags = ['--rate-limit-token', MANY, '--rate-limit-org', MANY, '--rate-limit-address', MANY]
  const { operations, each, from, person, token } = await open(t, flags)
  t.ok(operations.length > 150)
  for (const operation of operations) {
    const own = endsToken(operation) ? (await from('POST', '/auth/login', { body: person })).json.token : token
    const answer = await each(operation, { token: own })
    const expected = asksForUser(operation) ? '"address", "token", "organization"' : '"address"'
    t.same(policiesOf(answer), { policy: expected, left: expected }, `${operation.operationId}: ${answer.status}`)
    t.not(answer.status, 429)
  }
})

/** Apps and trackers drop what they sent at some statuses: they are told to wait as for an engine that is away. */
const refusalOf = ({ path }: Operation): number => (path.startsWith('/in/') ? 503 : 429)

/** Called until the bucket is empty: meanwhile a second may pass, which fills it again. */
const refused = async (
  t: Test,
  { each }: Pick<Awaited<ReturnType<typeof open>>, 'each'>,
  operation: Operation,
  policy: string,
  optionsOf: () => { token?: string; address?: string } | Promise<{ token?: string; address?: string }>,
): Promise<void> => {
  const what = `${operation.operationId} by ${policy}`
  let answer: Answer | undefined
  await until(what, async () => {
    const options = await optionsOf()
    const read = { ...operation, method: 'GET', path: '/user', isRoot: false, params: [] }
    if (endsToken(operation)) while ((await each(read, options)).status !== 429);
    answer = await each(operation, options)
    return answer.status === refusalOf(operation)
  })
  t.match(answer, { headers: { 'retry-after': '1' } }, what)
  if (refusalOf(operation) !== 429) return
  t.match(answer, { json: { code: 'rate_limited' } }, what)
  t.match(answer?.headers.ratelimit, new RegExp(`"${policy}";r=0;t=1$`))
}

test('every route is refused when the bucket of an address or a token is empty', { timeout: 900_000 }, async (t) => {
  const world = await open(t, ['--rate-limit-token', '1', '--rate-limit-address', '1'])
  const login = async () => (await world.from('POST', '/auth/login', { body: world.person })).json.token
  for (const operation of world.operations) {
    await refused(t, world, operation, 'address', () => ({ address: '10.2.0.1' }))
    const token = async () => ({ token: endsToken(operation) ? await login() : world.token })
    if (asksForUser(operation)) await refused(t, world, operation, 'token', token)
  }
})

test('every route is refused when the bucket of an organization is empty', { timeout: 900_000 }, async (t) => {
  const world = await open(t, ['--rate-limit-org', '1'])
  const login = async () => (await world.from('POST', '/auth/login', { body: world.person })).json.token
  for (const operation of world.operations.filter(asksForUser)) {
    const token = async () => ({ token: endsToken(operation) ? await login() : world.token })
    await refused(t, world, operation, 'organization', token)
  }
})
