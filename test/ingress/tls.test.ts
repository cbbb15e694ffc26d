import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { Agent, fetch, WebSocket } from 'undici'
import { makeCertificate } from '../support/certificate.ts'
import { openDoor, simpleRoute } from './support.ts'

test('https and wss', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-tls-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const files = makeCertificate(folder)
  if (files === undefined) return void t.pass('https', { skip: 'there is no openssl to make a certificate with' })
  const tls = { certPath: files.certFile, keyPath: files.keyFile }
  const echo = {
    path: '/live',
    accepts: ['user' as const],
    open: (socket: { send(text: string): number }) => ({
      message: (data: ArrayBuffer) => void socket.send(Buffer.from(data).toString()),
      drain: () => undefined,
      reauthorized: () => undefined,
      closed: () => undefined,
    }),
  }
  const routes = [simpleRoute({}, async () => ({ body: { data: 'x'.repeat(300_000) } }))]
  const door = await openDoor(t, { routes, channels: [echo] }, { tls })
  t.match(door.url, /^https:/)
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  t.teardown(() => dispatcher.close())
  const answer = await fetch(`${door.url}/api/v3/thing`, { dispatcher })
  t.equal(answer.status, 200)
  t.equal(((await answer.json()) as { data: string }).data.length, 300_000)
  t.ok(answer.headers.get('strict-transport-security'))
  const socket = new WebSocket(`${door.url.replace('https', 'wss')}/api/v3/live`, {
    dispatcher,
    headers: { authorization: 'Bearer good' },
  })
  const text = new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(data)))
  socket.addEventListener('open', () => socket.send('hello'))
  t.equal(await text, 'hello')
  socket.close()
  await t.rejects(openDoor(t, {}, { tls: { ...tls, certPath: '/nowhere.pem' } }), {
    message: /certificate .*nowhere/,
  })
})
