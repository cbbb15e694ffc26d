import { test, type Test } from 'tap'
import type { Broadcast } from '../../src/engines/broadcast.ts'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { folderOf } from '../support/folder-of.ts'
import { openClient, openRedisServer, withoutRedis as skip } from '../support/redis-server.ts'
import { until } from '../support/service.ts'

const TOPIC = 'locations-3'

const opened = async (t: Test) => {
  const server = await openRedisServer(folderOf(t))
  const admin = await openClient(server.url)
  const open = async (): Promise<Broadcast> => {
    const tables = await openRedisTables({ url: server.url })
    t.teardown(() => tables.close())
    return tables.broadcast as Broadcast
  }
  t.teardown(async () => {
    admin.destroy()
    await server.kill('SIGKILL')
  })
  return { admin, one: await open(), other: await open() }
}

/** What is heard of a topic, and how it ends. */
const heardBy = (broadcast: Broadcast, topic = TOPIC): { messages: Buffer[]; end(): void } => {
  const messages: Buffer[] = []
  return { messages, end: broadcast.hear(topic, (bytes) => messages.push(Buffer.from(bytes))) }
}

/** Tells it again until somebody has heard it: a hearer may not listen yet. */
const arrives = (teller: Broadcast, message: Buffer, hearer: { messages: Buffer[] }, topic = TOPIC): Promise<void> =>
  until('the message to arrive', () => {
    teller.tell(topic, message)
    return hearer.messages.some((heard) => heard.equals(message))
  })

test('bytes reach the processes that hear the topic, and not the one that tells them', { skip }, async (t) => {
  const { one, other } = await opened(t)
  const [own, others, elsewhere] = [heardBy(one), heardBy(other), heardBy(other, 'locations-4')]
  const large = Buffer.alloc(256 * 1024, 'ż\0')
  await arrives(one, large, others)
  await arrives(other, Buffer.from([0, 255]), own)
  await arrives(one, Buffer.from('elsewhere'), elsewhere, 'locations-4')
  t.ok(own.messages.every((heard) => heard.equals(Buffer.from([0, 255]))))
  t.ok(others.messages.every((heard) => heard.equals(large)))
})

test('a hearer that has ended hears nothing, and one that comes after it does', { skip }, async (t) => {
  const { one, other } = await opened(t)
  const first = heardBy(other)
  await arrives(one, Buffer.from('first'), first)
  const second = heardBy(other)
  first.end() // later than the next one has begun, as where a partition comes back quickly
  first.messages.length = 0
  await arrives(one, Buffer.from('second'), second)
  second.end()
  const third = heardBy(other)
  await arrives(one, Buffer.from('third'), third)
  t.same(first.messages, [])
})

test('what nobody hears is not sent to the server', { skip }, async (t) => {
  const { admin, one, other } = await opened(t)
  const calls = async (): Promise<number> =>
    Number(/cmdstat_spublish:calls=(\d+)/.exec(String(await admin.sendCommand(['INFO', 'commandstats'])))?.[1] ?? 0)
  await until('nothing more to be sent', async () => {
    one.tell(TOPIC, Buffer.from('anybody?'))
    const before = await calls()
    for (let i = 0; i < 10; i++) one.tell(TOPIC, Buffer.from('hello?'))
    return before > 0 && (await calls()) === before
  })
  await arrives(one, Buffer.from('hello'), heardBy(other))
})

test('a hearer whose connection was cut, and one whose server was emptied, hear again', { skip }, async (t) => {
  const { admin, one, other } = await opened(t)
  const hearer = heardBy(other)
  await arrives(one, Buffer.from('before'), hearer)
  await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
  await arrives(one, Buffer.from('after the cut'), hearer)
  await admin.sendCommand(['FLUSHALL'])
  await arrives(one, Buffer.from('after the flush'), hearer)
  t.pass()
})
