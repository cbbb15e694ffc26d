import { test, type Test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import type { Find, TableStore } from '../../src/engines/table-store.ts'
import type { RowChange } from '../../src/kernel/table.ts'
import { folderOf } from '../support/folder-of.ts'
import { openClient, openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { storeCheckpoint } from '../support/store-checkpoint.ts'

const ROWS = 100_000
/** What a call may hold the server. */
const CALL_MICROS = 5_000
/** A call is judged by the quickest of so many, and of more where it took too long: it may have waited for a processor. */
const TIMES = 6
const TIMES_MAX = 60
const COMMIT_ROWS = 2_000
const ORGANIZATIONS = 60_000

const TRACKERS = {
  name: 'trackers',
  version: 1,
  equality: ['hubIds', 'kind', 'externalId'],
  range: ['name'],
  text: ['name'],
}

const change = (no: number, name = `Van ${(no * 7919) % ROWS}`): RowChange => ({
  table: 'trackers',
  scope: 'org',
  id: `0190e000-0000-7000-8000-${String(no).padStart(12, '0')}`,
  row: { name, kind: no % 3 === 0 ? 'phone' : 'device', hubIds: [`hub-${no % 50}`], externalId: `ext-${no}` },
})

const sort = { field: 'name', order: 'asc' as const }
const several = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

const QUESTIONS: { [name: string]: Omit<Find, 'limit'> & { limit?: number } } = {
  'in order': { sort },
  'far behind': { sort, offset: 20_000 },
  'of a hub': { where: { hubIds: 'hub-3' }, sort },
  'of a hub, 500 at once': { where: { hubIds: 'hub-3' }, sort, limit: 500 },
  'of ten hubs': { where: { hubIds: several('hub-', 10) }, sort },
  'of a hub and a kind': { where: { hubIds: 'hub-3', kind: 'phone' }, sort },
  'two thirds': { where: { kind: 'device' }, sort: { ...sort, order: 'desc' } },
  'any of 2,251 values': { where: { externalId: several('ext-', 2_251) }, sort },
  'none of 2,251 values': { where: { externalId: several('no-', 2_251) }, sort },
  'a word of a tenth': { text: 'van 1', sort },
  'a part of the order': { range: { field: 'name', from: 'Van 2', to: 'Van 4' }, sort },
}

/** Runs something several times; answers the quickest time of each of its calls to the server, in µs, with what was called. */
const timesOf = async (
  admin: { sendCommand(args: string[]): Promise<unknown> },
  run: (time: number) => Promise<unknown>,
): Promise<{ what: string; micros: number }[]> => {
  const calls: { what: string; micros: number }[] = []
  const tooLong = (): boolean => calls.some(({ micros }) => micros > CALL_MICROS)
  for (let time = 0; time < TIMES || (time < TIMES_MAX && tooLong()); time++) {
    await admin.sendCommand(['SLOWLOG', 'RESET'])
    await run(time)
    const entries = (await admin.sendCommand(['SLOWLOG', 'GET', '-1'])) as [number, number, number, string[]][]
    // What a function calls is logged besides; marks and pings of the background are short.
    const own = entries
      .reverse()
      .filter(([, , , [command]]) => ['FCALL', 'UNLINK', 'SCAN', 'SMEMBERS', 'SSCAN'].includes(command))
    for (const [i, [, , micros, [command, name]]] of own.entries()) {
      const what = command === 'FCALL' ? name : command
      if (calls[i] === undefined) calls[i] = { what, micros }
      else if (micros < calls[i].micros) calls[i].micros = micros
    }
  }
  return calls
}

const load = async (tables: TableStore): Promise<void> => {
  for (let from = 0; from < ROWS; from += COMMIT_ROWS)
    await tables.commit(Array.from({ length: COMMIT_ROWS }, (_, i) => change(from + i)))
}

test('no call holds the server over 5 ms, on a table of 100,000 rows', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t: Test) => {
  const server = await openRedisServer(folderOf(t))
  const admin = await openClient(server.url)
  const tables = await openRedisTables({ url: server.url })
  t.teardown(async () => {
    await tables.close()
    admin.destroy()
    await server.kill('SIGKILL')
  })
  await tables.declare(TRACKERS)
  await load(tables)
  await admin.sendCommand(['CONFIG', 'SET', 'slowlog-max-len', '200000', 'slowlog-log-slower-than', '0'])

  const judge = async (name: string, run: (time: number) => Promise<unknown>): Promise<void> => {
    const calls = await timesOf(admin, run)
    const slowest = calls.reduce((most, call) => (call.micros > most.micros ? call : most), { what: '', micros: 0 })
    t.ok(
      calls.length > 0 && slowest.micros <= CALL_MICROS,
      `${name}: ${calls.length} calls, ${slowest.micros} µs at most`,
    )
  }
  // Another page each time: one that was asked for before is remembered.
  for (const [name, question] of Object.entries(QUESTIONS))
    await judge(name, async () => {
      // What a process answered before it remembers.
      const fresh = await openRedisTables({ url: server.url })
      await fresh.declare(TRACKERS)
      await fresh.find('trackers', 'org', { limit: 50, total: true, ...question })
      await fresh.close()
    })
  await judge('1,000 rows by id', () =>
    tables.getMany(
      'trackers',
      'org',
      several('', 1_000).map((no) => change(Number(no)).id),
    ),
  )
  await judge('1,000 rows changed', (time) =>
    tables.commit(Array.from({ length: 1_000 }, (_, no) => change(no, `Lorry ${time} ${no}`))),
  )
  const [scopes] = (await admin.sendCommand(['KEYS', '*:scopes'])) as string[]
  const others = Array.from({ length: ORGANIZATIONS }, (_, no) => `z${change(no).id}`)
  for (let from = 0; from < ORGANIZATIONS; from += COMMIT_ROWS)
    await admin.sendCommand(['SADD', scopes, ...others.slice(from, from + COMMIT_ROWS)])
  await judge('the first row of a table in which 60,000 organizations have rows', async () => {
    for await (const { scope } of tables.scanAll('trackers')) {
      t.equal(scope, 'org')
      break
    }
  })
  await admin.sendCommand(['SREM', scopes, ...others])
  await judge('a table built beside and put in place, the old one deleted', async (time) => {
    await tables.declare({ ...TRACKERS, name: 'trackers@next' })
    await tables.reset(['trackers@next'], 'p@next')
    const rows = Array.from({ length: 200 }, (_, no) => ({ ...change(no), table: 'trackers@next' }))
    await storeCheckpoint(tables, 'p@next', { all: time }, rows)
    await tables.promote(['trackers'], 'p')
  })
})
