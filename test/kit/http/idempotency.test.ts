import { test, type Test } from 'tap'
import { recalledRequests } from '../../../projections/recalled-requests.ts'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { Idempotency, type KeptAnswer, type Run } from '../../../src/kit/http/idempotency.ts'
import { RECALLED } from '../../../src/kit/http/request-mark.ts'
import { RowsOverlay } from '../../../src/kit/consumers/projection-overlay.ts'
import { openKeyring } from '../../../src/kit/keys/keyring-file.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { until } from '../../support/service.ts'

const request = { key: 'k', caller: 'user:org:one', operationId: 'createHub', fingerprint: 'body' }
const answer: KeptAnswer = { status: 201, headers: { etag: '"1"' }, body: '{"status":true,"secret":"wonderful"}' }
const isRun = (begun: KeptAnswer | Run): begun is Run => 'seed' in begun
const asRun = (begun: KeptAnswer | Run): Run => {
  if (!isRun(begun)) throw new Error('it has an answer already')
  return begun
}

const setUp = async (t: Test) => {
  const folder = folderOf(t)
  const clock = new FakeClock()
  const tables = await openLmdbTableStore({ path: `${folder}/tables`, clock })
  t.teardown(() => tables.close())
  const lines: string[] = []
  const note = (msg: string): void => void lines.push(msg)
  const options = {
    tables,
    clock,
    keyring: await openKeyring(`${folder}/keys.json`),
    logger: { debug: note, info: note, warn: note, error: note },
    life: { node: 'here', id: 'now' },
  }
  const idempotency = new Idempotency(options)
  await idempotency.declare()
  const lived = (node: string, id: string) => new Idempotency({ ...options, life: { node, id } })
  return { clock, tables, lines, idempotency, otherNode: lived('there', 'now'), lived }
}

test('of two at the same time one runs', async (t) => {
  const { idempotency, otherNode } = await setUp(t)
  const begun = await Promise.allSettled([idempotency.begin(request), otherNode.begin(request)])
  t.equal(begun.filter(({ status }) => status === 'fulfilled').length, 1)
  t.match(
    begun.find(({ status }) => status === 'rejected'),
    { reason: { code: 'in_progress' } },
  )
})

test('an answer is kept for a day, sealed', async (t) => {
  const { idempotency, clock, tables } = await setUp(t)
  await asRun(await idempotency.begin(request)).done(answer)
  t.same(await idempotency.begin(request), answer)
  for await (const { row, id } of tables.scanAll('idempotency'))
    t.notMatch(JSON.stringify([id, row]), /wonderful|user:org|body/)
  clock.advance(24 * 3_600_000 - 1)
  t.same(await idempotency.begin(request), answer)
  clock.advance(2)
  t.ok(isRun(await idempotency.begin(request)), 'then it is a new request')
})

test('a run that crashed may run again, once, with its ids and its time', async (t) => {
  const { idempotency, otherNode, clock } = await setUp(t)
  // The crash: nothing marks the run alive.
  clock.after = () => () => undefined
  const crashed = asRun(await idempotency.begin(request))
  const startedAt = clock.now()
  clock.advance(59_999)
  await t.rejects(otherNode.begin(request), { code: 'in_progress' })
  clock.advance(1)
  await t.rejects(otherNode.begin({ ...request, fingerprint: 'another' }), { code: 'key_reused' })
  const begun = await Promise.allSettled([idempotency.begin(request), otherNode.begin(request)])
  const runs = begun.filter((one) => one.status === 'fulfilled').map((one) => asRun(one.value))
  t.equal(runs.length, 1)
  t.same(runs[0].seed, crashed.seed)
  t.equal(runs[0].now, startedAt)
  await runs[0].done(answer)
  t.same(await otherNode.begin(request), answer)
})

test('what an earlier life of the node has begun runs again at once, once, with its ids and its time', async (t) => {
  const { idempotency, otherNode, lived, clock } = await setUp(t)
  const begun = asRun(await idempotency.begin(request))
  const startedAt = clock.now()
  clock.advance(5)
  const next = lived('here', 'later')
  await t.rejects(otherNode.begin(request), { code: 'in_progress' }, 'another node cannot know')
  await t.rejects(next.begin({ ...request, fingerprint: 'another' }), { code: 'key_reused' })
  const both = await Promise.allSettled([next.begin(request), next.begin(request)])
  const runs = both.filter((one) => one.status === 'fulfilled').map((one) => asRun(one.value))
  t.equal(runs.length, 1)
  t.same([runs[0].seed, runs[0].now], [begun.seed, startedAt])
  await t.rejects(next.begin(request), { code: 'in_progress' }, 'its own run is alive')
  const third = asRun(await lived('here', 'last').begin(request))
  await third.done(answer)
  t.same(await otherNode.begin(request), answer)
})

test('a life that ended between its claim of the next attempt and its row blocks nobody', async (t) => {
  const { idempotency, lived, tables } = await setUp(t)
  const begun = asRun(await idempotency.begin(request))
  const dying = lived('here', 'dying')
  const { commit } = tables
  tables.commit = async () => {
    throw new Error('killed')
  }
  await t.rejects(dying.begin(request), { message: 'killed' })
  tables.commit = commit
  await t.rejects(dying.begin(request), { code: 'in_progress' }, 'to itself it is alive')
  t.same(asRun(await lived('here', 'last').begin(request)).seed, begun.seed)
})

test('a run that is alive is not taken over, however long it takes', async (t) => {
  const { idempotency, otherNode, clock, tables } = await setUp(t)
  const run = asRun(await idempotency.begin(request))
  for (let minute = 0; minute < 5; minute++) {
    for (let beat = 0; beat < 3; beat++) {
      clock.advance(20_000)
      await until('a mark of life', async () => {
        for await (const { row } of tables.scanAll('idempotency')) return row.aliveAt === clock.now()
        return false
      })
    }
    await t.rejects(otherNode.begin(request), { code: 'in_progress' })
  }
  await run.done(answer)
  clock.advance(20_000)
  t.same(await otherNode.begin(request), answer, 'and no late mark of life takes the answer away')
})

test('a run without an answer to keep runs again', async (t) => {
  const { idempotency } = await setUp(t)
  const first = asRun(await idempotency.begin(request))
  await first.open()
  const second = asRun(await idempotency.begin(request))
  t.same(second.seed, first.seed)
  await second.done({ ...answer, body: 'x'.repeat(600_000) })
  t.ok(isRun(await idempotency.begin(request)), 'an answer that is too large to keep is made again')
})

test('a revoked token reads its own answer for ten minutes', async (t) => {
  const { idempotency, clock } = await setUp(t)
  await asRun(await idempotency.begin(request)).done(answer, 'old-token')
  t.same(await idempotency.answerForRevoked('old-token', request), answer)
  t.equal(await idempotency.answerForRevoked('old-token', { ...request, fingerprint: 'another' }), undefined)
  t.equal(await idempotency.answerForRevoked('another-token', request), undefined)
  clock.advance(10 * 60_000 + 1)
  t.equal(await idempotency.answerForRevoked('old-token', request), undefined)
})

test('a key that the tables have forgotten is told again by what the log says of it', async (t) => {
  const { idempotency, clock, tables } = await setUp(t)
  const projection = recalledRequests(clock, ['hub-'])
  const recall = async (mark: string | undefined): Promise<void> => {
    const rows = new RowsOverlay(tables, '')
    const event = { stream: 'hub-1', revision: 0, position: 0, loggedAt: clock.now(), id: 'e', type: 'x', isJson: true }
    await projection.apply({ ...event, data: new Uint8Array(), metadata: { request: mark } }, rows)
    await tables.commit(rows.take())
  }
  const forget = async (): Promise<void> => {
    const rows = tables.scanAll('idempotency')
    for await (const { scope, id } of rows) await tables.commit([{ table: 'idempotency', scope, id, row: null }])
  }
  const first = asRun(await idempotency.begin(request))
  await first.done(answer)
  t.match(first.mark, /^[\w-]{41}$/, 'hashes and a time')
  clock.advance(3_600_000)
  await forget()
  t.not(asRun(await idempotency.begin({ ...request, key: 'other' })).mark, first.mark)

  await recall(undefined)
  await recall(first.mark)
  await t.rejects(idempotency.begin({ ...request, fingerprint: 'another' }), { code: 'key_reused' })
  const again = asRun(await idempotency.begin(request))
  t.same([again.seed, again.now, again.mark], [first.seed, first.now, first.mark], 'it makes the ids of the first')
  await t.rejects(idempotency.begin(request), { code: 'in_progress' })
  await again.done(answer)
  t.same(await idempotency.begin(request), answer)

  await forget()
  const { get } = tables
  tables.get = async () => {
    throw new Error('the log is being read')
  }
  await t.rejects(idempotency.begin(request), { message: 'the log is being read' })
  tables.get = get
  t.same(asRun(await idempotency.begin(request)).seed, first.seed, 'a refusal meanwhile leaves no run behind')

  await forget()
  clock.advance(23 * 3_600_000)
  await recall(first.mark)
  for await (const { id } of tables.scanAll(RECALLED.name)) t.fail(`${id} is older than a day`)
  t.not(asRun(await idempotency.begin(request)).now, first.now, 'then it is a new request')
})
