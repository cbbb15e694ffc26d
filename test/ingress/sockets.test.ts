import { test, type Test } from 'tap'
import { WebSocket } from 'undici'
import type { Caller } from '../../src/kernel/caller.ts'
import type { Channel, ChannelSocket } from '../../src/kit/http/channel.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openDoor, rawClient, simpleRoute, user, waitFor, type Door } from './support.ts'

interface Opened {
  caller: Caller
  socket: ChannelSocket
  frames: string[]
  closed: number
  reauthorized: Caller[]
  drained: number
}

/** A channel that notes what it is told and echoes text. */
const noteChannel = (change: Partial<Channel> = {}): { channel: Channel; opened: Opened[] } => {
  const opened: Opened[] = []
  const channel: Channel = {
    path: '/live',
    accepts: ['user'],
    open: (socket, caller) => {
      const one: Opened = { caller, socket, frames: [], closed: 0, reauthorized: [], drained: 0 }
      opened.push(one)
      return {
        message: (data, isBinary) => {
          const text = Buffer.from(data).toString()
          one.frames.push(isBinary ? `binary:${text}` : text)
          socket.send(`echo:${text}`)
        },
        drain: () => void one.drained++,
        reauthorized: (caller) => void one.reauthorized.push(caller),
        closed: () => void one.closed++,
      }
    },
    ...change,
  }
  return { channel, opened }
}

interface Client {
  ws: WebSocket
  texts: string[]
  closed: Promise<number>
  send(message: unknown): void
}

const open = async (t: Test, door: Door, path = '/live'): Promise<Client> => {
  const ws = new WebSocket(`${door.url.replace('http', 'ws')}/api/v3${path}`)
  ws.binaryType = 'arraybuffer'
  const texts: string[] = []
  ws.addEventListener('message', ({ data }) => texts.push(String(data)))
  const closed = new Promise<number>((resolve) => ws.addEventListener('close', ({ code }) => resolve(code)))
  ws.addEventListener('error', () => undefined)
  t.teardown(() => ws.close())
  await new Promise((resolve) => ws.addEventListener('open', resolve))
  return {
    ws,
    texts,
    closed,
    send: (message) => ws.send(typeof message === 'string' ? message : JSON.stringify(message)),
  }
}

const upgrade = async (
  t: Test,
  door: Door,
  headers: string,
  connection = 'Upgrade',
): Promise<{ head: string; client: Awaited<ReturnType<typeof rawClient>> }> => {
  const client = await rawClient(t, door)
  client.send(
    `GET /api/v3/live HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`,
  )
  return { head: await client.until(/\r\n\r\n/), client }
}

test('authenticating at the upgrade', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  const good = await upgrade(t, door, 'Authorization: Bearer good\r\n')
  t.match(good.head, /^HTTP\/1.1 101 /)
  await waitFor(() => opened.length === 1, 'the channel opens')
  t.equal(opened[0].caller.kind, 'user')
  good.client.socket.destroy()
  await waitFor(() => opened[0].closed === 1, 'the channel is told of the end')
  const bad = await upgrade(t, door, 'Authorization: Bearer bad\r\n')
  t.match(bad.head, /^HTTP\/1.1 401 /)
  t.match(bad.head, /www-authenticate: Bearer/i)
  t.match(await bad.client.closed, /"code":"unauthenticated"/)
  t.equal(opened.length, 1)
  t.match(
    (await upgrade(t, door, 'Authorization: Basic Zm9v\r\n')).head,
    /^HTTP\/1.1 401 /,
    'another scheme is no token',
  )
  t.equal((await door.call('GET', '/live')).status, 426, 'no upgrade')
})

test('a socket whose token took a moment to look up stays open, whatever its channel allocates', async (t) => {
  const { channel } = noteChannel()
  // Over memory that the upgrade freed, glibc hands out these: 16 is the flag of `Connection: close` in uWebSockets.js.
  const taken: Buffer[] = []
  const takeMemory = (): void => {
    for (let bytes = 16; bytes < 256; bytes += 8)
      for (let times = 0; times < 4; times++) taken.push(Buffer.allocUnsafeSlow(bytes).fill(16))
  }
  const greedy: Channel = {
    ...channel,
    open: (socket, caller) => {
      takeMemory()
      socket.send('open')
      return channel.open(socket, caller)
    },
  }
  const authenticate = (): Promise<Caller> => new Promise((resolve) => setImmediate(() => resolve(user())))
  const door = await openDoor(t, { channels: [greedy], authenticate })
  const echo = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69])
  for (let turn = 0; turn < 10; turn++) {
    const { client } = await upgrade(t, door, 'Authorization: Bearer good\r\n')
    await client.until(/open/)
    client.send(echo)
    t.match(await client.until(/echo:hi/), /echo:hi/, `socket ${turn}`)
  }
  const closing = await upgrade(t, door, 'Authorization: Bearer good\r\n', 'close')
  t.match(closing.head, /^HTTP\/1.1 400 /, 'a request that ends its connection is told so')
})

test('authenticating by the first message', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  client.send({ type: 'subscribe', id: 's1' })
  client.ws.send(new Uint8Array([65, 66]))
  await waitFor(() => client.texts.length === 2, 'frames sent on the heels of auth arrive')
  t.same(opened[0].frames, ['{"type":"subscribe","id":"s1"}', 'binary:AB'], 'in order, without the auth message')
  const closes = async (first: unknown, code: number, message: string) => {
    const one = await open(t, door)
    one.send(first)
    t.equal(await one.closed, code, message)
  }
  await closes('nonsense', 4400, 'no JSON')
  await closes({ type: 'hello' }, 4400, 'no known type')
  await closes('7', 4400, 'no object')
  await closes({ type: 'subscribe', id: 's1' }, 4401, 'another type than auth')
  await closes({ type: 'points', points: [] }, 4401, 'points')
  await closes([{ lat: 1 }], 4401, 'bare points')
  await closes({ type: 'auth', token: 'bad' }, 4401, 'a bad token')
  await closes({ type: 'auth' }, 4401, 'no token')
  const typing = await open(t, door)
  typing.send({ type: 'auth', token: 'good', tokne: 'x' })
  await waitFor(() => typing.texts.length === 1, 'a member that is not known')
  t.same(JSON.parse(typing.texts[0]), { type: 'error', code: 'invalid', message: '/tokne is not a known field' })
  typing.send({ type: 'auth', token: 'device' })
  t.equal(await typing.closed, 4403, 'and the connection still waits for its auth')
  await closes({ type: 'auth', token: 'device' }, 4403, 'a credential that does not open this channel')
  t.equal(opened.length, 1)
})

test('whoever lacks the second factor that their organization asks for opens nothing but the routes that set it up', async (t) => {
  const { channel, opened } = noteChannel()
  const routes = [
    simpleRoute({ path: '/closed', access: 'user' }),
    simpleRoute({ path: '/points', access: 'points' }),
    simpleRoute({ path: '/open', access: 'user', enrols: true }),
  ]
  const door = await openDoor(t, { channels: [channel], routes })
  const lacking = user({ isSecondFactorRequired: true })
  door.callers.set('lacking', lacking)
  door.callers.set('enrolled', user({ ...lacking, hasSecondFactor: true }))
  const status = async (path: string, token: string) => (await door.call('GET', path, { token })).status
  t.same(
    [await status('/closed', 'lacking'), await status('/points', 'lacking'), await status('/open', 'lacking')],
    [403, 403, 200],
  )
  t.same([await status('/closed', 'enrolled'), await status('/points', 'enrolled')], [200, 200])
  t.match((await door.call('GET', '/closed', { token: 'lacking' })).body, { code: 'second_factor_required' })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'lacking' })
  t.equal(await client.closed, 4403)
  t.equal(opened.length, 0)
  const before = await open(t, door)
  before.send({ type: 'auth', token: 'good' })
  await waitFor(() => opened.length === 1, 'open')
  door.callers.set('good', lacking)
  door.change({ organizationId: lacking.organizationId })
  t.equal(await before.closed, 4403, 'and what is open when the organization begins to ask for it')
})

test('a socket that does not authenticate is closed', async (t) => {
  const { channel } = noteChannel()
  const clock = new FakeClock()
  const door = await openDoor(t, {
    channels: [channel],
    clock,
    limits: { authTimeoutMs: 3_000, unauthenticatedPerAddressMax: 2 },
  })
  const [first, second] = [await open(t, door), await open(t, door)]
  const third = await upgrade(t, door, '')
  t.match(third.head, /^HTTP\/1.1 429 /, 'an address has only so many of them')
  clock.advance(3_000)
  t.equal(await first.closed, 4408)
  t.equal(await second.closed, 4408)
  await open(t, door)
})

test('a token is renewed by a new auth message', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  door.callers.set('newer', user({ jti: 'jti-9' }))
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  await waitFor(() => opened.length === 1, 'open')
  client.send(' \n{ "token": "newer", "type": "auth" }')
  await waitFor(() => opened[0].reauthorized.length === 1, 'renewed')
  t.match(opened[0].reauthorized[0], { jti: 'jti-9' })
  client.send({ type: 'points', note: '"auth"' })
  await waitFor(() => client.texts.length === 1, 'a frame that only mentions auth is the channel’s')
  client.send({ type: 'auth' })
  await waitFor(() => client.texts.length === 2, 'an auth message without token is answered')
  t.match(JSON.parse(client.texts[1]), { type: 'error', code: 'invalid' })
  client.send({ type: 'auth', token: 'other' })
  t.equal(await client.closed, 4403, 'of another user')
  t.equal(opened[0].closed, 1)
  const second = await open(t, door)
  second.send({ type: 'auth', token: 'good' })
  second.send({ type: 'auth', token: 'bad' })
  t.equal(await second.closed, 4401)
})

test('a socket that renews its token without end is closed', async (t) => {
  const { channel } = noteChannel()
  const door = await openDoor(t, { channels: [channel], clock: new FakeClock(Date.now()) })
  for (const message of [{ type: 'auth', token: 'good' }, { type: 'auth' }]) {
    const client = await open(t, door)
    client.send({ type: 'auth', token: 'good' })
    for (let i = 0; i < 101; i++) client.send(message)
    t.equal(await client.closed, 4429)
  }
})

test('a token that expires ends its socket', async (t) => {
  const { channel, opened } = noteChannel()
  const clock = new FakeClock(Date.now())
  const door = await openDoor(t, { channels: [channel], clock })
  door.callers.set('short', user({ expiresAt: clock.now() + 80 }))
  door.callers.set('long', user({ expiresAt: Date.now() + 60 * 24 * 3_600_000 }))
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'short' })
  const long = await open(t, door)
  long.send({ type: 'auth', token: 'long' })
  await waitFor(() => opened.length === 2, 'both are open')
  clock.advance(80)
  t.equal(await client.closed, 4401)
  long.send('still')
  await waitFor(() => long.texts.length === 1, 'a token of sixty days does not overflow the timer')
})

test('the day from which a second factor is asked for ends the sockets of those who have none by then', async (t) => {
  const { channel, opened } = noteChannel()
  const clock = new FakeClock(Date.now())
  const door = await openDoor(t, { channels: [channel], clock })
  const [dayMs, laterMs] = [80, 200].map((ms) => clock.now() + ms)
  const clients = new Map<string, Client>()
  for (const name of ['none', 'setUp', 'moved']) {
    door.callers.set(name, user({ secondFactorDueMs: dayMs }))
    const client = await open(t, door)
    client.send({ type: 'auth', token: name })
    clients.set(name, client)
  }
  await waitFor(() => opened.length === 3, 'all are open')
  const of = (name: string): Client => clients.get(name) as Client
  const echoes = async (name: string): Promise<void> => {
    const before = of(name).texts.length
    of(name).send('still')
    await waitFor(() => of(name).texts.length > before, `${name} is open`)
  }
  clock.advance(79)
  for (const name of clients.keys()) await echoes(name)
  door.callers.set('none', user({ isSecondFactorRequired: true, hasSecondFactor: false }))
  door.callers.set('setUp', user({ isSecondFactorRequired: true, hasSecondFactor: true }))
  door.callers.set('moved', user({ secondFactorDueMs: laterMs }))
  clock.advance(1)
  t.equal(await of('none').closed, 4403)
  await waitFor(() => opened.filter(({ reauthorized }) => reauthorized.length > 0).length === 2, 'both are looked up')
  await echoes('setUp')
  await echoes('moved')
  door.callers.set('moved', user({ isSecondFactorRequired: true, hasSecondFactor: false }))
  clock.advance(120)
  t.equal(await of('moved').closed, 4403, 'on the day that was named instead')
  await echoes('setUp')
})

/** Timers count from the beginning of their turn of the event loop: by the wall clock they can be early. */
class EarlyClock extends FakeClock {
  override after(ms: number, run: () => void): () => void {
    return super.after(ms > 5 ? ms - 5 : ms, run)
  }
}

test('access that changes is looked up anew', async (t) => {
  const { channel, opened } = noteChannel()
  const clock = new EarlyClock(Date.now())
  const door = await openDoor(t, { channels: [channel], clock })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  const bystander = await open(t, door)
  bystander.send({ type: 'auth', token: 'other' })
  await waitFor(() => opened.length === 2, 'both are open')
  door.callers.set('good', user({ hubIds: ['hub-1'] }))
  door.change({ organizationId: 'org-1', userId: 'user-1' })
  await waitFor(() => opened.some(({ reauthorized }) => reauthorized.length > 0), 'the channel hears of it')
  t.match(opened.find(({ reauthorized }) => reauthorized.length > 0)?.reauthorized[0], { hubIds: ['hub-1'] })
  door.change({ organizationId: 'org-1', userId: 'someone-else' })
  door.callers.delete('good')
  door.change({ organizationId: 'org-1', jti: 'jti-1', graceMs: 100 })
  door.change({ organizationId: 'org-1' })
  client.send('alive')
  await waitFor(() => client.texts.length === 1, 'grace keeps it open, whatever else changes')
  clock.advance(100)
  t.equal(await client.closed, 4401, 'gone after the grace')
  bystander.send('alive')
  await waitFor(() => bystander.texts.length === 1, 'another organization is untouched')
})

test('a refreshed token in time keeps the socket', async (t) => {
  const { channel, opened } = noteChannel()
  const clock = new FakeClock(Date.now())
  const door = await openDoor(t, { channels: [channel], clock })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  await waitFor(() => opened.length === 1, 'open')
  door.callers.set('fresh', user({ jti: 'jti-fresh' }))
  door.callers.delete('good')
  door.change({ organizationId: 'org-1', userId: 'user-1', jti: 'jti-1', graceMs: 60 })
  client.send({ type: 'auth', token: 'fresh' })
  await waitFor(() => opened[0].reauthorized.length === 1, 'renewed')
  clock.advance(120)
  client.send('alive')
  await waitFor(() => client.texts.length === 1, 'alive after the grace')
})

test('frames that are too large and sockets of a restart', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  client.ws.send(new Uint8Array(1024 * 1024 + 1))
  t.equal(await client.closed, 1009)
  const whole = await open(t, door)
  whole.send({ type: 'auth', token: 'good' })
  await waitFor(() => opened.length === 2, 'open')
  whole.ws.send(new Uint8Array(1024 * 1024))
  await waitFor(() => opened[1].frames.length === 1, 'a whole MiB is taken')
  await door.ingress.close()
  t.equal(await whole.closed, 1012)
  t.equal(opened[1].closed, 1)
})

test('a socket that never reads is bounded and ended', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  const { client } = await upgrade(t, door, 'Authorization: Bearer good\r\n')
  client.socket.pause()
  await waitFor(() => opened.length === 1, 'open')
  const text = 'x'.repeat(256 * 1024)
  let buffered = 0
  for (let sent = 0; sent < 200 && opened[0].closed === 0; sent++)
    buffered = Math.max(buffered, opened[0].socket.send(text))
  await waitFor(() => opened[0].closed === 1, 'it is closed, not fed for ever')
  t.ok(buffered > 1024 * 1024 && buffered < 20 * 1024 * 1024, `at most ${buffered} bytes waited`)
})

test('a channel is told when the buffer has emptied', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] })
  const { client } = await upgrade(t, door, 'Authorization: Bearer good\r\n')
  client.socket.pause()
  await waitFor(() => opened.length === 1, 'open')
  const text = 'x'.repeat(256 * 1024)
  while (opened[0].socket.send(text) < 1024 * 1024);
  client.socket.resume()
  await waitFor(() => opened[0].socket.bufferedBytes() === 0, 'it empties')
  t.ok(opened[0].drained > 0)
})

test('binary garbage and a channel that fails cost only their connection', async (t) => {
  const failing = noteChannel({
    path: '/ingest',
    open: () => ({
      message: () => {
        throw new Error('a bug')
      },
      drain: () => undefined,
      reauthorized: () => undefined,
      closed: () => undefined,
    }),
  })
  const { channel } = noteChannel()
  const door = await openDoor(t, { channels: [channel, failing.channel] })
  const garbage = await upgrade(t, door, '')
  garbage.client.send(Buffer.from(Array.from({ length: 500 }, (_, i) => (i * 37) % 256)))
  await garbage.client.closed
  const client = await open(t, door, '/ingest')
  client.send({ type: 'auth', token: 'good' })
  client.send('boom')
  t.equal(await client.closed, 1011)
  t.match(door.lines.find(({ level }) => level === 'error')?.fields?.error, /a bug/)
  const healthy = await open(t, door)
  healthy.send({ type: 'auth', token: 'good' })
  healthy.send('alive')
  await waitFor(() => healthy.texts.length === 1, 'others go on')
})

test('connections are bounded together, and sockets that end make room', async (t) => {
  const { channel, opened } = noteChannel()
  const door = await openDoor(t, { channels: [channel] }, { connectionsMax: 3 })
  for (let round = 0; round < 6; round++) {
    const { client, head } = await upgrade(t, door, 'Authorization: Bearer good\r\n')
    t.match(head, /^HTTP\/1.1 101 /, `round ${round}`)
    client.socket.destroy()
    await waitFor(() => opened[round]?.closed === 1, 'closed')
  }
  for (let held = 0; held < 3; held++) await upgrade(t, door, 'Authorization: Bearer good\r\n')
  const fourth = await rawClient(t, door)
  t.equal(await fourth.closed, '', 'one too many is cut')
})

test('rights that change while a socket is looked up, or renewed, are those that it ends with', async (t) => {
  const { channel, opened } = noteChannel()
  const callers = new Map<string, Caller>([['good', user({ hubIds: ['before'] })]])
  const answers: (() => void)[] = []
  let isHeld = false
  const authenticate = async (token: string): Promise<Caller> => {
    const caller = callers.get(token) as Caller
    if (isHeld) await new Promise<void>((answer) => answers.push(answer))
    return caller
  }
  const door = await openDoor(t, { channels: [channel], authenticate })
  const client = await open(t, door)
  client.send({ type: 'auth', token: 'good' })
  await waitFor(() => opened.length === 1, 'open')
  isHeld = true
  const become = (hubIds: string[], token = 'good'): void => {
    callers.set(token, user({ hubIds }))
    door.change({ organizationId: 'org-1', userId: 'user-1' })
  }
  const endsWith = (hub: string, next: () => (() => void) | undefined): Promise<void> =>
    waitFor(() => {
      next()?.()
      const { hubIds } = opened[0].reauthorized.at(-1) as Caller & { hubIds: string[] }
      return hubIds.includes(hub)
    }, `the rights of ${hub}`)
  become(['during'])
  become(['after'])
  await waitFor(() => answers.length > 0, 'the first look-up')
  answers.shift()?.()
  await waitFor(() => opened[0].reauthorized.length > 0, 'the answer to the first')
  await endsWith('after', () => answers.shift())
  callers.set('fresh', user({ hubIds: ['after'] }))
  client.send({ type: 'auth', token: 'fresh' })
  await waitFor(() => answers.length === 1, 'the renewal')
  const renewed = answers.shift() as () => void
  callers.set('fresh', user({ hubIds: ['later'] }))
  become(['later'])
  await endsWith('later', () => answers.shift())
  renewed()
  await waitFor(() => opened[0].reauthorized.at(-2) !== undefined && answers.length > 0, 'looked up once more')
  await endsWith('later', () => answers.shift())
})
