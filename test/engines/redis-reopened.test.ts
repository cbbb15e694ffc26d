import { test } from 'tap'
import type { Client } from '../../src/engines/redis-tables/clients.ts'
import { Connection } from '../../src/engines/redis-tables/connection.ts'

const DEADLINE_MS = 50
const CUT = new Error('Disconnects client')

/** A client whose questions are answered by the test, and fail where it is closed before. */
class FakeClient implements Client {
  readonly isCluster: boolean
  private readonly asked = new Map<string, { answer(value: unknown): void; fail(error: Error): void }>()
  private readonly name: string
  isClosed = false

  constructor(isCluster = false, name = 'server') {
    this.isCluster = isCluster
    this.name = name
  }

  send = (_key: string, args: readonly unknown[]): Promise<unknown> =>
    new Promise((answer, fail) => this.asked.set(args.join(' '), { answer, fail }))

  nameOf = (): string => this.name
  masters = async () => [{ name: this.name, sendCommand: (args: unknown[]) => this.send('', args) }]
  openAnother = async () => ({ sendCommand: (args: unknown[]) => this.send('', args), close: () => this.close() })

  /** Answers the question that matches, once it was asked. */
  async answer(question: RegExp, value: unknown): Promise<void> {
    await settled()
    const [found] = [...this.asked.keys()].filter((one) => question.test(one))
    if (found === undefined) throw new Error(`${question} was not asked, but ${[...this.asked.keys()].join('; ')}`)
    const { answer } = this.asked.get(found)!
    this.asked.delete(found)
    answer(value)
  }

  hasBeenAsked = (question: RegExp): boolean => [...this.asked.keys()].some((one) => question.test(one))

  close(): void {
    this.isClosed = true
    for (const { fail } of this.asked.values()) fail(CUT)
    this.asked.clear()
  }
}

/** All that follows has happened, and no time has passed: no deadline ends meanwhile. */
const settled = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}

/** The first client is silent, so the next one takes its place; meanwhile, questions begin. */
const replaced = async <Under>(first: FakeClient, next: FakeClient, begin: (connection: Connection) => Under) => {
  let open: (client: Client) => void = () => undefined
  const opened = new Promise<Client>((resolve) => (open = resolve))
  let late: () => void = () => undefined
  const isLate = new Promise<void>((resolve) => (late = resolve))
  const openNext = (): Promise<Client> => {
    late()
    return opened
  }
  const connection = new Connection(first, openNext, DEADLINE_MS)
  const alive = setTimeout(() => undefined, 60_000) // deadlines alone keep no process
  const silent = connection.call('k', ['GET', 'silent']).then(String, String)
  await isLate
  clearTimeout(alive)
  const under = await begin(connection)
  open(next)
  await settled()
  return { connection, under, silent }
}

const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'answered',
    (error: { code?: string }) => error.code,
  )

test('where a connection is given up, what only reads is asked again, and what writes is not', async (t) => {
  const [first, next] = [new FakeClient(), new FakeClient()]
  const { connection, under, silent } = await replaced(first, next, (connection) => ({
    read: connection.call('k', ['GET', 'row']),
    walked: connection.fcall('walk', ['k'], []),
    written: [connection.call('k', ['SET', 'row', '1']), connection.fcall('commit', ['k'], [])].map(codeOf),
  }))
  t.match(await silent, /engine_down|do not answer/)
  t.notOk(next.hasBeenAsked(/silent/), 'nobody waits for what was late before')
  t.same(await Promise.all(under.written), ['engine_down', 'engine_down'])
  await next.answer(/^GET row$/, 'row')
  await next.answer(/_walk/, 'rows')
  t.same([await under.read, await under.walked], ['row', 'rows'])
  t.notOk(next.hasBeenAsked(/SET|commit/))
  await connection.close()
})

/** Waits for a replica, up to the question whether one follows. */
const waiting = async (client: FakeClient): Promise<void> => {
  await client.answer(/^INFO replication$/, 'slave0:state=online')
  await client.answer(/^SET k:waited/, 'OK')
  await settled()
}

test('where a connection is given up, replicas are asked for again, of the same server alone', async (t) => {
  const begin = (first: FakeClient) => async (connection: Connection) => {
    const kept = codeOf(connection.replicated(['k']))
    await waiting(first)
    return { kept }
  }
  const [first, next] = [new FakeClient(), new FakeClient()]
  const same = await replaced(first, next, begin(first))
  await waiting(next)
  await next.answer(/^WAIT/, 1)
  t.equal(await same.under.kept, 'answered')
  await same.connection.close()

  const [before, after] = [new FakeClient(false, 'before'), new FakeClient(false, 'after')]
  const another = await replaced(before, after, begin(before))
  t.equal(await another.under.kept, 'engine_down', 'the next master need not have what was written')
  await another.connection.close()
})

test('servers of a cluster that do answer are heard out', async (t) => {
  const [first, next] = [new FakeClient(true), new FakeClient(true)]
  const { connection, under } = await replaced(first, next, (connection) => ({
    written: connection.call('k', ['SET', 'row', '1']),
  }))
  t.notOk(first.isClosed)
  await first.answer(/^SET/, 'OK')
  t.equal(await under.written, 'OK')
  await connection.close()
  t.ok(first.isClosed && next.isClosed)
})
