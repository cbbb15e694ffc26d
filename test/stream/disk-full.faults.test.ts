import { randomUUID } from 'node:crypto'
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { openSocket } from '../support/open-socket.ts'
import { type Answer, allRows, ask, call, signUp, startService, until } from '../support/service.ts'

const SIZE_MB = 96
const FRAME = 500

/** Why the disk of this machine cannot be filled, or false. */
const noMount = (folder: string): string | false => {
  if (process.getuid?.() !== 0) return 'needs root to mount a small disk'
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m`, 'tmpfs', folder]).status === 0
    ? false
    : 'cannot mount a small disk here'
}

test('a full disk: nothing is acknowledged, and it goes on by itself when there is room', {
  timeout: 900_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-disk-'))
  const reason = noMount(folder)
  if (reason !== false) {
    rmdirSync(folder)
    return void t.skip(reason, async () => undefined)
  }
  const service = await startService(`${folder}/data`)
  t.teardown(async () => {
    await service.kill()
    execFileSync('umount', ['-l', folder])
    rmdirSync(folder)
  })
  const { token } = await signUp(service)
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key
  const ingest = await openSocket(service, 'ingest', key)
  await ingest.heard(({ type }) => type === 'ready')
  let seq = 0
  const sentAt = Date.now()
  const frame = () => ({
    type: 'points',
    seq: ++seq,
    points: Array.from({ length: FRAME }, (_, i) => ({
      externalId: `t${i % 20}`,
      recordedAt: sentAt - 1_000_000 + seq * FRAME + i,
      lat: 52,
      lng: 21,
    })),
  })
  const acknowledged = (): number => ingest.messages.filter(({ type }) => type === 'ack').at(-1)?.seq ?? 0
  ingest.send(frame())
  await ingest.heard((message) => message.type === 'ack' && message.seq === 1)

  const fill = (): void => {
    const { bavail, bsize } = statfsSync(folder)
    try {
      if (bavail > 0) appendFileSync(`${folder}/filler`, Buffer.alloc(bavail * bsize))
    } catch (error) {
      // The service was faster: then it is full too.
      if ((error as { code?: string }).code !== 'ENOSPC') throw error
    }
  }
  const body = { points: [{ externalId: 'h', recordedAt: sentAt, lat: 1, lng: 1 }] }
  const post = (): Promise<Answer> => call(service, 'POST', '/location-history/bulk', { token: key, body })
  fill()
  // What a merge of the history gives back is filled too.
  const filling = setInterval(fill, 5)
  t.teardown(() => clearInterval(filling))
  for (let full = false; !full && seq < 120; ) {
    const before = acknowledged()
    ingest.send(frame())
    await until('an acknowledgement, or a full disk', async () => {
      const isRed = (await call(service, 'GET', '//readyz')).status === 503
      full = isRed && (await post()).status === 503 && acknowledged() === before
      return full || acknowledged() > before
    })
  }
  const held = acknowledged()
  t.ok(held < seq, `frame ${seq} is not acknowledged`)
  t.equal((await call(service, 'GET', '//healthz')).status, 200, 'it is alive')
  const refused = await post()
  t.match(
    { status: refused.status, code: refused.json?.code, retry: Number(refused.headers['retry-after']) > 0 },
    { status: 503, code: 'engine_down', retry: true },
  )
  t.equal(acknowledged(), held, 'nothing was acknowledged meanwhile')
  await until('the probe to be red', async () => (await call(service, 'GET', '//readyz')).status === 503)
  const group = (): Promise<Answer> =>
    call(service, 'POST', '/geofence-group', { token, body: { name: `Yards ${randomUUID()}` } })
  for (let asked = 0; asked < 20; asked++) {
    const red = await call(service, 'GET', '//readyz')
    t.match({ status: red.status, code: red.json?.code }, { status: 503, code: 'engine_down' }, 'it stays red')
    t.ok(red.json?.engines?.includes('log'), `it names the log: ${red.json?.engines}`)
    const answer = await group()
    t.match(
      { status: answer.status, code: answer.json?.code, retry: Number(answer.headers['retry-after']) > 0 },
      { status: 503, code: 'engine_down', retry: true },
    )
    await new Promise((resume) => setTimeout(resume, 200))
  }
  t.match((await call(service, 'GET', '//metrics')).text, /^waymark_engine_up\{engine="log"\} 0$/m)

  clearInterval(filling)
  rmSync(`${folder}/filler`)
  await until('the frames that waited', () => acknowledged() === seq)
  await until('the probe to be green', async () => (await call(service, 'GET', '//readyz')).status === 200)
  t.equal((await group()).status, 201, 'resources are written again')
  t.equal((await post()).status, 200)
  const expected = seq * FRAME + 1
  await until('history', async () => (await allRows(service, '/location-histories', token)).length >= expected)
  t.equal(
    (await allRows(service, '/location-histories', token)).length,
    expected,
    'nothing acknowledged is lost, nothing is there twice',
  )
  ingest.close()
})
