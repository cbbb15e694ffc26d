import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import type { FrontOrder } from '../support/clickhouse/main.ts'
import { folderOf } from '../support/folder-of.ts'
import { MemoryWatch } from '../support/memory-watch.ts'
import { type RealDay, realDay } from '../support/real-day.ts'
import { sendThrough } from '../support/send-through.ts'
import { call, type Service, signUp, startService, until } from '../support/service.ts'
import { checkDay, prepare, type Setting } from '../support/stream-checks.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { openReceiver, type Receiver } from '../support/webhook-receiver.ts'

const FIXES = 700

interface World {
  /** Makes the server do so; answers how many requests hang. */
  order(wanted: FrontOrder): Promise<number>
  proxy: TcpProxy
  service: Service
  day: RealDay
  receiver: Receiver
  setting: Setting
}

/** The service on embedded log and tables, and a history behind a network that fails. */
const openWorld = async (t: Test, fixes = FIXES): Promise<World> => {
  const folder = folderOf(t)
  const args = ['dist/test/support/clickhouse/main.js', join(folder, 'engine')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  t.teardown(async () => {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  })
  const [url] = await once(createInterface({ input: child.stdout! }), 'line')
  const order = async (wanted: FrontOrder): Promise<number> => {
    child.send(wanted)
    return (await once(child, 'message'))[0]
  }
  const proxy = await TcpProxy.open(Number(new URL(url).port))
  const retries = ['--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  const service = await startService(`${folder}/data`, ['--history', `http://127.0.0.1:${proxy.port}`, ...retries])
  t.teardown(async () => {
    await service.kill()
    await proxy.close()
  })
  const day = await realDay(t, fixes, Date.now())
  const receiver = await openReceiver(t)
  const { token } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)
  return { order, proxy, service, day, receiver, setting }
}

interface Fault {
  name: string
  begin(world: World): unknown
  end(world: World): unknown
  /** Pings are answered meanwhile. */
  isReady?: boolean
}

const ofFront = (name: 'hang' | 'cut' | 'proxyError' | 'tooManyParts', isReady = false): Fault => ({
  name,
  begin: ({ order }) => order({ fault: name }),
  end: ({ order }) => order({ fault: 'none' }),
  isReady,
})

const FAULTS: readonly Fault[] = [
  {
    name: 'refuses',
    begin: ({ order }) => order({ isListening: false }),
    end: ({ order }) => order({ isListening: true }),
  },
  ofFront('hang'),
  ofFront('cut'),
  ofFront('proxyError'),
  ofFront('tooManyParts', true),
  {
    name: 'slow, seconds a call',
    begin: ({ order }) => order({ delayMs: 3_000 }),
    end: ({ order }) => order({ delayMs: 0 }),
  },
  {
    name: 'half open',
    begin: ({ proxy }) => proxy.silence(),
    end: ({ proxy }) => {
      proxy.speak()
      proxy.cut()
    },
  },
]

test('each fault of ClickHouse while points come: they are acknowledged, the history is named, reads answer 503, and then all is there once', {
  timeout: 900_000,
}, async (t) => {
  const world = await openWorld(t)
  const { service, day, setting, receiver } = world
  const { token, ingestKey } = setting
  const readiness = () => call(service, 'GET', '//readyz')
  const memory = new MemoryWatch(service.process.pid)
  const share = Math.ceil(day.fixes.length / FAULTS.length)
  for (const [i, { name, begin, end, isReady }] of FAULTS.entries()) {
    await begin(world)
    const sender = sendThrough(() => service, ingestKey, day.fixes.slice(i * share, (i + 1) * share))
    await sender.ended
    t.equal(sender.acknowledged, Math.min(share, day.fixes.length - i * share), `${name}: points are acknowledged`)
    if (isReady !== true) {
      await until(`${name} to be told`, async () => (await readiness()).status === 503)
      t.match((await readiness()).text, /history/, `${name}: /readyz names the history`)
      t.equal((await call(service, 'GET', '/user', { token })).status, 200, `${name}: what needs no history works`)
    }
    await end(world)
    await until(`the service after ${name}`, async () => (await readiness()).status === 200)
  }
  memory.end(t)
  await checkDay(t, service, { day, receiver, setting })
})

test('a read of a history that is gone answers 503 with Retry-After, also in the middle of waiting', async (t) => {
  const { service, order, setting } = await openWorld(t, 20)
  const read = () => call(service, 'GET', '/location-histories', { token: setting.token })
  t.equal((await read()).status, 200)
  await order({ fault: 'hang' })
  const waiting = read()
  await until('the read to be under way', async () => (await order({})) > 0)
  await order({ fault: 'proxyError' })
  const answers = [await waiting, await read()]
  await order({ isListening: false })
  answers.push(await read())
  for (const { status, headers, json } of answers) {
    t.equal(status, 503)
    t.equal(json.code, 'engine_down')
    t.ok(Number(headers['retry-after']) >= 1)
  }
  await order({ isListening: true, fault: 'none' })
  await until('reads', async () => (await read()).status === 200)
})
