import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { allRows, ask, call, type Service, signUp, startService, until } from '../support/service.ts'

const BATCH = 500
const BATCHES_MAX = 500
const ROOM_BYTES = 1024 * 1024

/** How a process ended, and what it wrote to standard error. */
const watched = (service: Service): { ended: () => string | undefined; errors: () => string } => {
  let ended: string | undefined
  let errors = ''
  service.process.stderr?.on('data', (text) => (errors += text))
  service.process.once('close', (code, signal) => (ended = String(signal ?? code)))
  return { ended: () => ended, errors: () => errors }
}

/** Why files of a running process cannot be limited here, or false. */
const noLimits = spawnSync('prlimit', ['--version']).status === 0 ? false : 'needs prlimit (Linux, util-linux)'

for (const engine of ['log', 'tables'] as const)
  test(`a write error other than a full disk, ${engine}: the process ends at once and says why; nothing acknowledged is lost`, {
    timeout: 600_000,
    skip: noLimits,
  }, async (t) => {
    const data = folderOf(t)
    const service = await startService(data)
    t.teardown(() => service.kill())
    const { ended, errors } = watched(service)
    const { token } = await signUp(service)
    const { data: made } = await ask(service, 'POST', '/ingest-key', { token, body: { name: 'G', autoCreate: true } })
    const start = Date.now() - 3_600_000
    let sent = 0
    /** 200 where the points are durable; undefined where nobody answers any more. */
    const send = async (): Promise<number | undefined> => {
      const points = Array.from({ length: BATCH }, (_, i) => ({
        externalId: `t${i % 20}`,
        recordedAt: start + sent * BATCH + i,
        lat: 52,
        lng: 21 + i / 1e4,
        attributes: { note: 'x'.repeat(400) },
      }))
      sent += 1
      const body = { points }
      return call(service, 'POST', '/location-history/bulk', { token: made.key, body }).then(
        ({ status }) => status,
        () => undefined,
      )
    }
    let acknowledged = 0
    if ((await send()) === 200) acknowledged += 1
    const size = statSync(join(data, engine, 'data.mdb')).size
    const limit = engine === 'log' ? size + ROOM_BYTES : size
    spawnSync('prlimit', ['--pid', String(service.process.pid), `--fsize=${limit}`])
    for (let batches = 0; ended() === undefined && batches < BATCHES_MAX; batches++) {
      const status = await send()
      if (status === 200) acknowledged += 1
      else if (status === undefined) break
      if (engine === 'tables')
        await call(service, 'POST', '/geofence-group', { token, body: { name: `Yards ${batches}` } }).catch(
          () => undefined,
        )
    }
    await until('the process to end', () => ended() !== undefined)
    t.not(ended(), '0', 'a supervisor sees that it failed')
    t.match(
      errors().trimEnd().split('\n').at(-1),
      new RegExp(`${engine}.* cannot be written \\((EFBIG: file too large|EIO: i/o error)\\): ending at once`),
      'the last line says why',
    )

    if (engine === 'tables') return
    const again = await startService(data)
    t.teardown(() => again.kill())
    const rows = async (): Promise<number> => (await allRows(again, '/location-histories?fields=_id', token)).length
    await until('every acknowledged point', async () => (await rows()) >= acknowledged * BATCH)
    t.ok((await rows()) <= sent * BATCH, 'and none twice')

    const crashed = watched(again)
    again.process.kill('SIGABRT')
    await until('the process to end', () => crashed.ended() !== undefined)
    t.equal(crashed.ended(), 'SIGABRT', 'a crash of native code ends it too')
  })
