import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** An engine that answers each piece with itself, behind a proxy. */
const opened = async (t: Test) => {
  const heard: string[] = []
  const engines = new Set<Socket>()
  const engine = createServer((socket) => {
    engines.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      heard.push(String(bytes))
      socket.write(bytes)
    })
  })
  engine.listen(0, '127.0.0.1')
  await once(engine, 'listening')
  const proxy = await TcpProxy.open((engine.address() as AddressInfo).port)
  const clients: Socket[] = []
  t.teardown(async () => {
    for (const socket of [...clients, ...engines]) socket.destroy()
    await proxy.close()
    engine.close()
  })
  const client = async () => {
    const socket = connect(proxy.port, '127.0.0.1')
    clients.push(socket)
    const read = { text: '', isClosed: false, socket }
    socket.on('data', (bytes) => (read.text += String(bytes)))
    socket.on('error', () => undefined)
    socket.once('close', () => (read.isClosed = true))
    await once(socket, 'connect')
    return read
  }
  return { proxy, heard, client }
}

test('a silent proxy forwards nothing and ends nothing; new connections speak again', async (t) => {
  const { proxy, heard, client } = await opened(t)
  const old = await client()
  old.socket.write('a')
  await until('an answer', () => old.text === 'a')
  proxy.silence()
  old.socket.write('b')
  const taken = await client()
  taken.socket.write('c')
  proxy.speak()
  const fresh = await client()
  fresh.socket.write('d')
  await until('an answer', () => fresh.text === 'd')
  t.same([old.text, taken.text, old.isClosed, taken.isClosed], ['a', '', false, false])
  t.same(heard, ['a', 'd'])
  t.equal(proxy.connections, 3)
})

test('answers alone are lost, and come when the network heals', async (t) => {
  const { proxy, heard, client } = await opened(t)
  const one = await client()
  one.socket.write('a')
  await until('an answer', () => one.text === 'a')
  proxy.silence('answers')
  one.socket.write('b')
  await until('the engine to hear it', () => heard.length === 2)
  t.equal(one.text, 'a')
  proxy.heal()
  await until('what was held back', () => one.text === 'ab')
})

test('a slow proxy keeps the order, and a cut ends all', async (t) => {
  const { proxy, heard, client } = await opened(t)
  const one = await client()
  proxy.slow(60)
  one.socket.write('a')
  await until('the engine to hear it', () => heard.length === 1)
  proxy.slow(0)
  one.socket.write('b')
  await until('both answers', () => one.text.length === 2)
  t.equal(one.text, 'ab')
  proxy.cut()
  await until('the end', () => one.isClosed)
  const two = await client()
  two.socket.write('c')
  await until('an answer', () => two.text === 'c')
})
