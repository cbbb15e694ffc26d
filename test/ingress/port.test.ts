import { test } from 'tap'
import { WebSocket } from 'undici'
import { openPort } from '../../src/ingress/port.ts'

test('a port is alive and says that the service starts, until somebody serves it', async (t) => {
  const port = await openPort({ host: '127.0.0.1', port: 0 })
  t.teardown(() => {
    port.stopListening()
    port.close()
  })
  const alive = await fetch(`${port.url}/healthz`)
  t.equal(alive.status, 200)
  t.same(await alive.json(), { status: true, data: { alive: true } })
  const ready = await fetch(`${port.url}/readyz`)
  t.match(await ready.json(), { status: false, code: 'overloaded', engines: [] })
  for (const init of [{}, { method: 'HEAD' }, { method: 'POST', body: 'x'.repeat(1_000_000) }]) {
    const other = await fetch(`${port.url}/api/v3/hubs`, init)
    t.equal(other.status, 503)
    t.equal(other.headers.get('retry-after'), '1')
    await other.text()
  }
  const socket = new WebSocket(port.url.replace('http', 'ws'))
  await new Promise((failed) => socket.addEventListener('error', failed))

  port.serve((res) => void res.end('served'))
  t.equal(await (await fetch(port.url)).text(), 'served')
})
