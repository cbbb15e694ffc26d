import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { openSocket } from '../support/open-socket.ts'
import { allRows, ask, signUp, startService, until } from '../support/service.ts'

test('SIGTERM: a request that has begun is stored and answered, sockets are told to come back, the exit code is 0', {
  timeout: 900_000,
}, async (t) => {
  const data = folderOf(t)
  const service = await startService(data)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'k', autoCreate: true } })).data.key
  const ingest = await openSocket(service, 'ingest', key)
  const live = await openSocket(service, 'live', token)
  live.send({ type: 'subscribe', id: 's', channels: ['positions'] })
  await live.heard(({ type }) => type === 'snapshot')
  await ingest.heard(({ type }) => type === 'ready')

  const body = JSON.stringify({ points: [{ externalId: 'new-bus', recordedAt: Date.now(), lat: 52, lng: 21 }] })
  const request = connect(service.port, '127.0.0.1')
  let answer = ''
  request.on('data', (chunk) => {
    answer += chunk
  })
  request.write(
    `POST /api/v3/location-history/bulk HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
  )
  ingest.send({ type: 'points', seq: 1, points: [{ externalId: 'new-van', recordedAt: Date.now(), lat: 52, lng: 21 }] })
  await ingest.heard(({ type }) => type === 'ack')
  const stopped = service.stop()
  await until('it to be stopping', () => service.lines.some((line) => line.includes('"stopping"')))
  request.write(body.slice(10))
  await until('the answer', () => answer.includes('"accepted"'))
  t.match(answer, /^HTTP\/1.1 200 .*"accepted":1/s)
  t.same(await Promise.all([ingest.closed, live.closed]), [1012, 1012])
  t.equal(await stopped, 0)

  const again = await startService(data)
  t.teardown(() => again.kill())
  await until('both points', async () => (await allRows(again, '/location-histories', token)).length === 2)
})

test('SIGTERM while it starts: it ends with 0 before it serves, and starts again', { timeout: 900_000 }, async (t) => {
  const folder = folderOf(t)
  let output = 'listening'
  let data = ''
  // Where this process is held up, the signal comes too late: then it is tried again.
  for (let no = 0; output.includes('listening') && no < 20; no++) {
    data = `${folder}/made-${no}`
    const args = ['dist/src/main.js', 'start', '--port', '0', '--data', data]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(() => child.kill('SIGKILL'))
    output = ''
    child.stdout.on('data', (text) => (output += text))
    let ended: string | undefined
    child.once('close', (code, signal) => (ended = String(signal ?? code)))
    await until('the engines to be opened', () => existsSync(data))
    child.kill('SIGTERM')
    await until('it to end', () => ended !== undefined)
    t.equal(ended, '0')
  }
  t.notMatch(output, 'listening')
  const again = await startService(data)
  t.equal(await again.stop(), 0)
})
