import { test, type Test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { eachOnce, Follower } from '../../../src/kit/consumers/follower.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

const SOURCE = { prefixes: ['thing-'] }

const open = async (t: Test) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  let appended = 0
  const append = async (stream = 'thing-1'): Promise<number> => {
    const data = encodeJson({ n: appended })
    const event = { id: idFrom(appended++), type: 'x', data, isJson: true, metadata: {} }
    return (await services.log.append(stream, [event], 'any')).position
  }
  return { ...services, append }
}

test('from its checkpoint, over a restart, and from now', async (t) => {
  const { append, tables, ...services } = await open(t)
  const collect = (name: string, seen: number[]) =>
    new Follower(services, {
      name,
      source: SOURCE,
      handle: ({ events }) => {
        seen.push(...events.map(({ position }) => position))
        return []
      },
    })
  const seen: number[] = []
  const follow = () => collect('checked', seen).start(tables)
  const first = await append()
  const one = follow()
  await one.ready()
  t.same(seen, [first])
  t.same((await tables.checkpoint('checked'))?.all, one.at)
  await one.close()
  const second = await append()
  const fresh: number[] = []
  const now = collect('fresh', fresh).startBehind(await services.log.headPosition())
  const again = follow()
  t.teardown(() => Promise.all([again.close(), now.close()]))
  await again.ready()
  t.same(seen, [first, second], 'nothing twice')
  const third = await append()
  await until('both to hear', () => seen.length === 3 && fresh.length > 0)
  t.same(fresh, [third])
})

test('a batch that fails is handed over again after a pause, and counts as lag meanwhile', async (t) => {
  const { append, clock, lines, ...services } = await open(t)
  let failures = 2
  const seen: number[] = []
  const follower = new Follower(
    { ...services, clock },
    {
      name: 'failing',
      source: SOURCE,
      handle: eachOnce((event) => {
        if (event.revision === 1 && failures-- > 0) throw new Error('not now')
        seen.push(event.revision)
      }),
    },
  )
  for (let i = 0; i < 3; i++) await append()
  follower.startBehind(-1)
  t.teardown(() => follower.close())
  for (const [pauseMs, failed] of [
    [100, 1],
    [500, 2],
  ]) {
    await until('it to fail', () => lines.length === failed)
    t.match(follower.lag(clock.now()), { consumer: 'failing', partition: 'all', events: 3 })
    clock.advance(pauseMs)
  }
  await follower.ready()
  t.same(seen, [0, 1, 2], 'an event that was handled is not handled again')
  t.match(lines, [{ fields: { consumer: 'failing', failures: 1 } }, { fields: { failures: 2 } }])
  t.match(follower.lag(clock.now()), { events: 0, seconds: 0 })
})

test('a checkpoint that cannot be stored is tried again, and the process lives on', async (t) => {
  const { append, tables, clock, lines, ...services } = await open(t)
  let isDown = true
  const failing = Object.assign(Object.create(tables), {
    commit: async (...args: Parameters<typeof tables.commit>) => {
      if (isDown) throw new Error('the tables are down')
      return tables.commit(...args)
    },
  })
  let handled = 0
  const follower = new Follower(
    { ...services, clock },
    {
      name: 'checked',
      source: SOURCE,
      handle: ({ events }) => {
        handled += events.length
        return []
      },
    },
  )
  await append()
  follower.start(failing)
  t.teardown(() => follower.close())
  await until('it to fail', () => lines.length > 0)
  isDown = false
  clock.advance(100)
  await until('the checkpoint', async () => (await tables.checkpoint('checked')) !== undefined)
  t.equal(handled, 2)
})

test('an owner that another one replaced stores nothing over it, and goes on from what is stored', async (t) => {
  const { append, tables, clock, lines, ...services } = await open(t)
  const seen: string[] = []
  const follow = (who: string) =>
    new Follower(
      { ...services, clock },
      {
        name: 'owned',
        source: SOURCE,
        handle: ({ events }) =>
          events.map(({ revision }) => {
            seen.push(`${who}${revision}`)
            return { table: 'rows', scope: 's', id: `${revision}`, row: { who } }
          }),
      },
    ).start(tables)
  await tables.declare({ name: 'rows', version: 1 })
  await append()
  const one = follow('a')
  await one.ready()
  const other = follow('b')
  await other.ready()
  t.teardown(() => Promise.all([one.close(), other.close()]))
  t.same(seen, ['a0'])
  await append()
  await until('the stale one to notice', () => lines.length > 0)
  t.match(lines[0].fields, { error: /another owner/ })
  await until('the row of the other', async () => (await tables.get('rows', 's', '1')) !== undefined)
  t.same((await tables.get('rows', 's', '1'))?.who, 'b')
  await other.close()
  clock.advance(100)
  await append()
  await until('the rest', async () => (await tables.get('rows', 's', '2')) !== undefined)
  t.same((await tables.get('rows', 's', '2'))?.who, 'a')
})

test('it ends while a batch is being handled, and what was not finished counts as not handled', async (t) => {
  const { append, ...services } = await open(t)
  await append()
  let end = (): void => undefined
  const follower = new Follower(services, {
    name: 'slow',
    source: SOURCE,
    handle: (_batch, signal) =>
      new Promise<undefined>((resume) => {
        signal.addEventListener('abort', () => resume(undefined))
        end()
      }),
  })
  const begun = new Promise<void>((resume) => (end = resume))
  follower.startBehind(-1)
  await begun
  await follower.close()
  t.equal(follower.at, undefined)
  await t.rejects(follower.ready(), /slow is closed/)
})

test('an owner that has lost its checkpoint takes it back only while it is its own', async (t) => {
  const { append, tables, clock, lines, ...services } = await open(t)
  const ours = { a: true, b: true }
  let handled = 0
  const follow = (who: 'a' | 'b') =>
    new Follower(
      { ...services, clock, isOurs: async () => ours[who] },
      {
        name: 'owned',
        source: SOURCE,
        handle: ({ events }) => {
          handled += events.length
          return []
        },
      },
    ).start(tables)
  await append()
  const one = follow('a')
  await one.ready()
  ours.a = false
  const other = follow('b')
  await other.ready()
  t.teardown(() => Promise.all([one.close(), other.close()]))
  const stored = await append()
  await until('the stale one to notice', () => lines.length > 0)
  await until('the other to store', async () => ((await tables.checkpoint('owned'))?.all ?? 0) >= stored)
  const failures = lines.length
  clock.advance(100)
  await until('the stale one to be asked', () => lines.length > failures)
  t.match(lines.at(-1)?.fields, { error: /another process follows/ })
  const before = handled
  const next = await append()
  await until('the owner to go on', async () => ((await tables.checkpoint('owned'))?.all ?? 0) >= next)
  t.equal(handled, before + 1, 'the other one alone')
})

test('closing waits for rows that are on their way, also after a failure of what followed them', async (t) => {
  const { clock, lines, ...services } = await open(t)
  const event = { id: idFrom(1), type: 'x', data: encodeJson({}), isJson: true, metadata: {} }
  const batch = (from: number) => ({
    events: Array.from({ length: 256 }, (_, i) => ({
      ...event,
      ...{ stream: 'thing-1', revision: from + i, position: from + i, loggedAt: 0 },
    })),
    checkpoint: from + 255,
    caughtUp: false,
  })
  const log = {
    async *follow() {
      yield batch(0)
      yield batch(256)
    },
  }
  let store = (): void => undefined
  const stored = new Promise<void>((resolve) => (store = resolve))
  const tables = { take: async () => ({ at: undefined, fence: 1 }), commit: () => stored }
  const handle = ({ checkpoint }: { checkpoint: number }): [] => {
    if (checkpoint > 255) throw new Error('not now')
    return []
  }
  const follower = new Follower({ ...services, log, clock }, { name: 'closing', source: SOURCE, handle }).start(tables)
  await until('it to fail', () => lines.length > 0)
  let isClosed = false
  const closing = follower.close().then(() => (isClosed = true))
  await new Promise((resume) => setImmediate(resume))
  t.equal(isClosed, false)
  store()
  await closing
})
