import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { allPages, allRows, ask, call, type Service, signUp, startService, until } from '../support/service.ts'

const BATCH = 500
const BATCHES_MAX = 500
/** Batches that are acknowledged before files may not grow any more: what is acknowledged can be lost only then. */
const BATCHES_BEFORE = 3
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

/** What a service acknowledged of what it was sent. */
interface Sent {
  token: string
  /** Times of the points that were acknowledged, ms since the epoch; each has its own. */
  points: Set<number>
  /** How many points were sent. */
  pointsSent: number
  /** Names of the geofence groups that were acknowledged. */
  groups: Set<string>
}

/** Sends points and writes geofence groups until nobody answers any more. */
const sendUntilItEnds = async (service: Service, engine: 'log' | 'tables', ended: () => unknown): Promise<Sent> => {
  const { token } = await signUp(service)
  const { data: made } = await ask(service, 'POST', '/ingest-key', { token, body: { name: 'G', autoCreate: true } })
  const start = Date.now() - 3_600_000
  const sent: Sent = { token, points: new Set(), pointsSent: 0, groups: new Set() }
  /** The status of the answer; undefined where nobody answers any more. */
  const statusOf = (path: string, key: string, body: object): Promise<number | undefined> =>
    call(service, 'POST', path, { token: key, body }).then(
      ({ status }) => status,
      () => undefined,
    )
  const send = async (i: number): Promise<number | undefined> => {
    const name = `Yards ${i}`
    const group = await statusOf('/geofence-group', token, { name })
    if (group === 201) sent.groups.add(name)
    const points = Array.from({ length: BATCH }, (_, j) => ({
      externalId: `t${j % 20}`,
      recordedAt: start + i * BATCH + j,
      lat: 52,
      lng: 21 + j / 1e4,
      attributes: { note: 'x'.repeat(400) },
    }))
    sent.pointsSent += BATCH
    const status = await statusOf('/location-history/bulk', made.key, { points })
    if (status === 200) for (const { recordedAt } of points) sent.points.add(recordedAt)
    return status
  }
  let batches = 0
  while (batches < BATCHES_BEFORE) await send(batches++)
  const { size } = statSync(join(service.data, engine, 'data.mdb'))
  const limit = engine === 'log' ? size + ROOM_BYTES : size
  spawnSync('prlimit', ['--pid', String(service.process.pid), `--fsize=${limit}`])
  while (ended() === undefined && batches < BATCHES_MAX) if ((await send(batches++)) === undefined) break
  return sent
}

/** Everything that was acknowledged is there after a start on the same folder, once. */
const checkKept = async (t: Test, service: Service, { token, points, pointsSent, groups }: Sent): Promise<void> => {
  const times = async (): Promise<number[]> =>
    (await allRows(service, '/location-histories?fields=recordedAt', token)).map(({ recordedAt }) =>
      Date.parse(recordedAt),
    )
  await until('every acknowledged point', async () => {
    const there = new Set(await times())
    return [...points].every((time) => there.has(time))
  })
  const there = await times()
  t.equal(new Set(there).size, there.length, 'no point is there twice')
  t.ok(there.length <= pointsSent, 'and none that was not sent')
  const names = (await allPages(service, '/geofence-groups', token)).map(({ name }) => name)
  t.same(
    [...groups].filter((name) => !names.includes(name)),
    [],
    'every acknowledged group is there',
  )
}

for (const engine of ['log', 'tables'] as const)
  test(`a write error other than a full disk, ${engine}: the process ends at once and says why; nothing acknowledged is lost`, {
    timeout: 600_000,
    skip: noLimits,
  }, async (t) => {
    const data = folderOf(t)
    const service = await startService(data)
    t.teardown(() => service.kill())
    const { ended, errors } = watched(service)
    const sent = await sendUntilItEnds(service, engine, ended)
    t.ok(sent.points.size >= BATCHES_BEFORE * BATCH, `${sent.points.size} points are acknowledged`)
    t.ok(sent.groups.size >= BATCHES_BEFORE, `${sent.groups.size} groups are acknowledged`)
    await until('the process to end', () => ended() !== undefined)
    t.not(ended(), '0', 'a supervisor sees that it failed')
    t.match(
      errors().trimEnd().split('\n').at(-1),
      new RegExp(`${engine}.* cannot be written \\((EFBIG: file too large|EIO: i/o error)\\): ending at once`),
      'the last line says why',
    )
    const again = await startService(data)
    t.teardown(() => again.kill())
    await checkKept(t, again, sent)
    if (engine === 'tables') return
    const crashed = watched(again)
    again.process.kill('SIGABRT')
    await until('the process to end', () => crashed.ended() !== undefined)
    t.equal(crashed.ended(), 'SIGABRT', 'a crash of native code ends it too')
  })
