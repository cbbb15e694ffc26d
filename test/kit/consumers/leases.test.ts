import { test, type Test } from 'tap'
import { type TableStore, tablesWith } from '../../../src/engines/table-store.ts'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { openRedisTables } from '../../../src/engines/redis-tables/redis-tables.ts'
import { GONE_LIFE_MS, LeaseMembers, LIFE_MS, LIFE_MS_MAX, LOOK_MS } from '../../../src/kit/consumers/lease-members.ts'
import { type Held, LeaseRows } from '../../../src/kit/consumers/lease-rows.ts'
import { LeaseOwners } from '../../../src/kit/consumers/leases.ts'
import { defer } from '../../../src/kit/consumers/deferred.ts'
import type { IsOurs } from '../../../src/kit/consumers/follower.ts'
import type { Owned } from '../../../src/kit/consumers/owners.ts'
import { sharesOf } from '../../../src/kit/consumers/shares.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { keepErrors } from '../../support/open-services.ts'
import { openClient, openRedisServer, withoutRedis } from '../../support/redis-server.ts'
import { until } from '../../support/service.ts'

const NAMES = Array.from({ length: 8 }, (_, partition) => ['matcher', 'history'].map((name) => `${name}-${partition}`))
  .flat()
  .concat('sweep')

/** How many listen for what processes tell each other. */
const NUMSUB = ['PUBSUB', 'NUMSUB', 'wm:{told}']

/** The last sign is seen at the first look, and the connections are asked about at the last. */
const GONE_LOOKS = 1 + GONE_LIFE_MS / LOOK_MS

/** A process as its leases see it: its clock can be held still. */
const openNode = async (t: Test, tables: TableStore, owner: string, names: readonly string[] = NAMES, node = owner) => {
  const clock = new FakeClock()
  const logger = keepErrors([])
  const owners = await LeaseOwners.open({ tables, clock, logger, life: { node, id: owner } })
  const has = new Set<string>()
  const isOurs = new Map<string, IsOurs>()
  const fails = { take: 0 }
  const all = names.map(
    (name): Owned => ({
      name,
      take: async (asks) => {
        if (fails.take-- > 0) throw new Error('not now')
        has.add(name)
        isOurs.set(name, asks)
      },
      leave: async () => void has.delete(name),
    }),
  )
  const joining = owners.join(all)
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await (await joining).leave()
    await owners.close()
  }
  t.teardown(close)
  return { owner, owners, clock, has, isOurs, fails, joining, close, crash: () => owners.close() }
}

type Node = Awaited<ReturnType<typeof openNode>>

/** Lets time pass for these nodes, a look at a time, until it is so. */
const pass = (nodes: readonly Node[], what: string, isSo: () => boolean): Promise<void> =>
  until(what, () => {
    if (isSo()) return true
    for (const { clock } of nodes) clock.advance(LOOK_MS)
    return false
  })

const isShared = (nodes: readonly Node[], names: readonly string[] = NAMES): boolean =>
  names.every((name) => nodes.filter(({ has }) => has.has(name)).length === 1)

/** Tables that all processes of a test share, and over which they tell each other of changes. */
const open = async (t: Test): Promise<TableStore> => {
  const tables = await openLmdbTableStore({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => tables.close())
  const listeners: ((text: string) => void)[] = []
  return tablesWith(tables, {
    tell: async (text) => {
      for (const listener of listeners) setImmediate(listener, text)
    },
    hear: (listener) => void listeners.push(listener),
  })
}

const walk = async (t: Test, tables: TableStore): Promise<void> => {
  const a = await openNode(t, tables, 'a')
  await a.joining
  t.equal(a.has.size, NAMES.length, 'the first takes all')
  const b = await openNode(t, tables, 'b')
  await b.joining
  await pass([a, b], 'an even share', () => isShared([a, b]) && b.has.size >= 6 && a.has.size >= 6)
  for (let partition = 0; partition < 8; partition++)
    t.equal(a.has.has(`matcher-${partition}`), a.has.has(`history-${partition}`), 'partitions stay together')
  await b.close()
  await pass([a], 'one that ends to hand over at once', () => a.has.size === NAMES.length)
}

test('shares follow who takes part, and what ends goes over at once', async (t) => walk(t, await open(t)))

test('the same on Redis', { skip: withoutRedis }, async (t) => {
  const server = await openRedisServer('/tmp')
  t.teardown(() => server.kill())
  const tables = await openRedisTables({ url: server.url })
  t.teardown(() => tables.close())
  await walk(t, tables)
})

test('a process whose connections have ended is held to be dead long before its life ends; one that is connected is not', {
  skip: withoutRedis,
}, async (t) => {
  const server = await openRedisServer('/tmp')
  t.teardown(() => server.kill())
  const [own, others, frozen] = await Promise.all([0, 1, 2].map(() => openRedisTables({ url: server.url })))
  const a = await openNode(t, own, 'a')
  const b = await openNode(t, others, 'b')
  const c = await openNode(t, frozen, 'c')
  t.teardown(() => Promise.all([own, others, frozen].map((tables) => tables.close())))
  await pass([a, b, c], 'all to have some', () => isShared([a, b, c]) && [a, b, c].every(({ has }) => has.size > 0))
  for (const { owners } of [a, b, c, a, b, c]) await owners.borrow([], async () => undefined) // signs say that they are shown
  const had = [...b.has]
  await others.close()
  let looks = 0
  await until('what it had to be taken', async () => {
    if (had.every((name) => a.has.has(name) || c.has.has(name))) return true
    if (looks >= GONE_LOOKS) return false
    looks++
    for (const { clock } of [a, c]) clock.advance(LOOK_MS)
    for (const { owners } of [a, c]) await owners.borrow([], async () => undefined)
    return false
  })
  const kept = [...c.has]
  for (let ms = 0; ms < GONE_LIFE_MS + LOOK_MS; ms += LOOK_MS) {
    a.clock.advance(LOOK_MS)
    await a.owners.borrow([], async () => undefined)
  }
  t.notOk(
    kept.some((name) => a.has.has(name)),
    'silence alone takes as long as ever',
  )
})

test('what a dead process had is taken after its life, counted by looks and by nobody’s clock', async (t) => {
  const tables = await open(t)
  const [a, b] = [await openNode(t, tables, 'a'), await openNode(t, tables, 'b')]
  await pass([a, b], 'both to have some', () => isShared([a, b]) && a.has.size > 0 && b.has.size > 0)
  const had = [...b.has]
  for (const { owners } of [b, a]) await owners.borrow([], async () => undefined) // b gives a sign, and a sees it
  // b gives no more signs, and goes on with what it has.
  for (let ms = 0; ms < LIFE_MS - 3 * LOOK_MS; ms += LOOK_MS) {
    a.clock.advance(LOOK_MS)
    await a.owners.borrow([], async () => undefined)
  }
  t.notOk(
    had.some((name) => a.has.has(name)),
    'not before',
  )
  a.clock.stand(10 * LIFE_MS)
  await a.owners.borrow([], async () => undefined)
  t.notOk(
    had.some((name) => a.has.has(name)),
    'who stood still itself holds nobody to be dead for that',
  )
  await pass([a], 'all to be taken', () => a.has.size === NAMES.length)
  const asks = had.map((name) => b.isOurs.get(name) as IsOurs)
  t.same(
    await Promise.all(asks.map((ask) => ask())),
    had.map(() => false),
    'who is asked says that it has nothing any more',
  )
  await pass([b], 'it to notice', () => had.every((name) => !b.has.has(name)))
  await pass([a, b], 'its share again', () => isShared([a, b]) && b.has.size > 0)
})

test('a process whose signs come late is waited for longer, for a while; one of a version before as long as ever', async (t) => {
  const other = new LeaseMembers({ node: 'b', id: 'b' }, 0)
  let atMs = 0
  const sign = (afterMs: number) => other.sign([], (atMs += afterMs))
  t.equal(sign(LOOK_MS).lifeMs, LIFE_MS)
  t.equal(sign(LOOK_MS + 700).lifeMs, LIFE_MS + 1_400, 'twice its longest delay')
  t.equal(sign(10 * LIFE_MS_MAX).lifeMs, LIFE_MS_MAX, 'and no longer than that')
  for (let i = 0; i < 2_000; i++) sign(LOOK_MS)
  t.equal(sign(LOOK_MS).lifeMs, LIFE_MS, 'it is busy no more')

  const diesAfterMs = (lifeMs: number | undefined): number => {
    const one = new LeaseMembers({ node: 'a', id: 'a' }, 0)
    const members = new Map([['b', { node: 'b', beat: 1, joins: [], ...(lifeMs !== undefined && { lifeMs }) }]])
    let nowMs = 0
    do one.see(members, (nowMs += LOOK_MS))
    while (one.lives('b'))
    return nowMs - LOOK_MS // the first look saw a sign that was new
  }
  t.same([diesAfterMs(LIFE_MS), diesAfterMs(3_300), diesAfterMs(undefined)], [LIFE_MS, 3_500, LIFE_MS_MAX])
})

test('whoever ends hands over at once, however far away the next look of the others is', async (t) => {
  const tables = await open(t)
  const [a, b] = [await openNode(t, tables, 'a'), await openNode(t, tables, 'b')]
  await pass([a, b], 'both to have some', () => isShared([a, b]) && a.has.size > 0 && b.has.size > 0)
  b.owners.leaveAll() // no time passes from here on
  await until('all to be taken', () => a.has.size === NAMES.length)
})

test('the same on Redis, also after the connection that hears was lost', { skip: withoutRedis }, async (t) => {
  const server = await openRedisServer('/tmp')
  t.teardown(() => server.kill())
  const [own, others, third] = await Promise.all([0, 1, 2].map(() => openRedisTables({ url: server.url })))
  t.teardown(() => Promise.all([own, others, third].map((tables) => tables.close())))
  const [a, b] = [await openNode(t, own, 'a'), await openNode(t, others, 'b')]
  await pass([a, b], 'both to have some', () => isShared([a, b]) && a.has.size > 0 && b.has.size > 0)
  b.owners.leaveAll() // no time passes from here on
  await until('all to be taken', () => a.has.size === NAMES.length)
  await b.close()

  const admin = await openClient(server.url)
  t.teardown(() => admin.destroy())
  const listening = async (): Promise<number> => Number(((await admin.sendCommand(NUMSUB)) as unknown[])[1])
  const c = await openNode(t, third, 'c')
  await pass([a, c], 'both to have some', () => isShared([a, c]) && a.has.size > 0 && c.has.size > 0)
  await until('all to listen', async () => (await listening()) === 3)
  await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'PUBSUB'])
  await until('all to listen again', async () => (await listening()) === 3)
  c.owners.leaveAll()
  await until('all to be taken', () => a.has.size === NAMES.length)
})

test('a change follows what others have changed since, and asks for nothing where nobody has', async (t) => {
  const tables = await open(t)
  let takes = 0
  const take = (consumer: string) => {
    takes++
    return tables.take(consumer)
  }
  const counted = tablesWith(tables, { take })
  const [a, b] = [new LeaseRows(counted), new LeaseRows(tables)]
  await a.declare()
  const give = (name: string, owner: string) => (held: Held) => ({ ...held, owners: { ...held.owners, [name]: owner } })
  await a.change(give('sweep', 'a'), [])
  await a.change(give('matcher-0', 'a'), [])
  t.equal(takes, 1)
  await b.change(give('matcher-1', 'b'), [])
  await a.change(give('matcher-2', 'a'), [])
  t.equal(takes, 2, 'another process has taken it meanwhile')
  t.same((await a.held()).owners, { sweep: 'a', 'matcher-0': 'a', 'matcher-1': 'b', 'matcher-2': 'a' })
})

test('whoever ends leaves everything at once where another process can take it, and nothing before its turn where none can', async (t) => {
  const tables = await open(t)
  const a = await openNode(t, tables, 'a')
  await a.joining
  a.owners.leaveAll()
  await a.owners.borrow([], async () => undefined)
  t.equal(a.has.size, NAMES.length, 'nobody else is there')
  const b = await openNode(t, tables, 'b')
  await pass([a, b], 'both to have some', () => isShared([a, b]) && a.has.size > 0 && b.has.size > 0)
  b.owners.leaveAll()
  await pass([a], 'what b had, before any of its roles is closed', () => a.has.size === NAMES.length)
  t.equal(b.has.size, 0)
  await b.close()
})

test('what is slow is left once the rest is, and a start beside another process does not wait for it', async (t) => {
  const tables = await open(t)
  const a = await openNode(t, tables, 'a', ['sweep'])
  await a.joining
  const life = { node: 'b', id: 'b' }
  const owners = await LeaseOwners.open({ tables, clock: new FakeClock(), logger: keepErrors([]), life })
  const [taken, left] = [defer(), defer()]
  const order: string[] = []
  const part = (name: string, isSlow: boolean): Owned => ({
    name,
    isSlow,
    take: () => (isSlow ? taken.promise : Promise.resolve()),
    leave: async () => {
      if (!isSlow) await left.promise
      order.push(name)
    },
  })
  const joined = await owners.join([part('matcher-0', true), part('history-0', false), part('matcher-1', true)])
  t.pass('its slow parts are still being taken')
  taken.resolve()
  owners.leaveAll()
  await owners.borrow([], async () => undefined)
  t.same(order, [], 'nothing is left before the quick one')
  left.resolve()
  await joined.leave()
  t.equal(order[0], 'history-0')
  t.equal(order.length, 3)
  await owners.close()
})

test('what people watch is taken before all else, which waits until it shows what came, and not for long', async (t) => {
  const tables = await open(t)
  const clock = new FakeClock()
  const owners = await LeaseOwners.open({ tables, clock, logger: keepErrors([]), life: { node: 'a', id: 'a' } })
  t.teardown(() => owners.close())
  const order: string[] = []
  const part = (name: string, shown?: () => Promise<unknown>): Owned => ({
    name,
    ...(shown !== undefined && { shown }),
    take: async () => void order.push(name),
    leave: async () => void order.push(`${name} left`),
  })
  const shown = defer()
  const joining = owners.join([part('history-0'), part('latest-0', () => shown.promise)])
  await until('it to be taken', () => order.length > 0)
  await owners.borrow([], async () => undefined)
  t.same(order, ['latest-0'])
  shown.resolve()
  await joining
  t.same(order.splice(0), ['latest-0', 'history-0'])

  const never = owners.join([part('history-1'), part('latest-1', () => new Promise(() => undefined))])
  await until('it to be taken', () => order.length > 0)
  await owners.borrow([], async () => undefined)
  t.same(order, ['latest-1'])
  clock.advance(2 * LOOK_MS)
  const joined = await never
  t.same(order.splice(0), ['latest-1', 'history-1'], 'others have waited for long enough')
  await joined.leave()
  t.same(order.splice(0).sort(), ['history-1 left', 'latest-1 left'])
})

test('what is borrowed is left by whoever has it, and goes back', async (t) => {
  const tables = await open(t)
  const [a, b] = [await openNode(t, tables, 'a'), await openNode(t, tables, 'b')]
  await pass([a, b], 'both to have some', () => isShared([a, b]) && a.has.size > 0 && b.has.size > 0)
  const names = [[...a.has][0], [...b.has][0]]
  let lent = false
  let end = (): void => undefined
  const borrowing = a.owners.borrow(names, async () => {
    lent = true
    await new Promise<void>((resume) => (end = resume))
    return 'done'
  })
  await pass([a, b], 'both to be lent', () => lent)
  t.notOk(
    names.some((name) => a.has.has(name) || b.has.has(name)),
    'nobody does it',
  )
  await pass([a, b], 'the others to be done', () =>
    isShared(
      [a, b],
      NAMES.filter((name) => !names.includes(name)),
    ),
  )
  end()
  t.equal(await borrowing, 'done')
  await pass([a, b], 'all to be done', () => isShared([a, b]))
})

test('a node that starts again has at once what it had before', async (t) => {
  const tables = await open(t)
  await (await openNode(t, tables, 'before', NAMES, 'node')).joining
  const after = await openNode(t, tables, 'after', NAMES, 'node')
  await after.joining
  t.equal(after.has.size, NAMES.length)
})

test('a borrower that dies lends nothing', async (t) => {
  const tables = await open(t)
  const a = await openNode(t, tables, 'a')
  await a.joining
  // What others tell would wake it, and it would borrow again.
  const deaf = tablesWith(tables, { hear: () => undefined })
  const b = await openNode(t, deaf, 'b', [])
  let lent = false
  void b.owners.borrow(['sweep'], () => new Promise(() => (lent = true))).catch(() => undefined)
  await pass([a, b], 'the loan', () => lent)
  await pass([a], 'it to come back', () => a.has.has('sweep'))
})

test('what cannot be taken is tried again, and given up when it goes', async (t) => {
  const tables = await open(t)
  const a = await openNode(t, tables, 'a', [])
  const taken: string[] = []
  let failures = 2
  const joining = a.owners.join([
    {
      name: 'sweep',
      take: async () => {
        if (failures-- > 0) throw new Error('not now')
        taken.push('sweep')
      },
      leave: async () => void taken.pop(),
    },
  ])
  await pass([a], 'it to be taken', () => taken.length === 1)
  await (await joining).leave()
  t.same(taken, [])
})

test('only who takes part in something has a share of it, even and with few moves', async (t) => {
  const partitions = Array.from({ length: 16 }, (_, partition) => `matcher-${partition}`)
  const two = sharesOf(
    new Map([
      ['a', [...partitions, 'api']],
      ['b', partitions],
    ]),
  )
  t.equal(two.get('api'), 'a')
  const counts = (shares: Map<string, string>, owner: string): number =>
    partitions.filter((name) => shares.get(name) === owner).length
  t.same([counts(two, 'a'), counts(two, 'b')], [8, 8])
  const few = ['history-0', 'history-1', 'history-2', 'history-3']
  const mixed = [...few, 'sweep', 'announce', 'rebuild', 'directory', 'access']
  const shares = sharesOf(
    new Map([
      ['a', mixed],
      ['b', mixed],
    ]),
  )
  t.equal(few.filter((name) => shares.get(name) === 'a').length, 2, 'partitions are even among themselves')
  const three = sharesOf(
    new Map([
      ['a', partitions],
      ['b', partitions],
      ['c', partitions],
    ]),
  )
  t.ok(['a', 'b', 'c'].every((owner) => counts(three, owner) >= 4 && counts(three, owner) <= 6))
  const moved = partitions.filter((name) => three.get(name) !== two.get(name) && three.get(name) !== 'c')
  t.ok(moved.length <= 4, `${moved.length} moved between those who stay`)
})
