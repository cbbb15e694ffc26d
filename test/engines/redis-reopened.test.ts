import { ErrorReply } from 'redis'
import { test } from 'tap'
import { type Client, sentOnce } from '../../src/engines/redis-tables/clients.ts'
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
  openAnother = async () => ({
    sendCommand: (args: unknown[]) => this.send('', args),
    subscribe: async () => undefined,
    close: () => this.close(),
  })

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

test('where those who wait for replicas hear nothing, their connection alone is given up', async (t) => {
  const client = new FakeClient()
  let opened = 0
  const others: FakeClient[] = []
  client.openAnother = async () => {
    const other = new FakeClient()
    others.push(other)
    return {
      sendCommand: (args: unknown[]) => other.send('', args),
      subscribe: async () => undefined,
      close: () => other.close(),
    }
  }
  const open = async (): Promise<Client> => {
    opened++
    return client
  }
  const connection = new Connection(client, open, DEADLINE_MS)
  const alive = setTimeout(() => undefined, 60_000)
  t.equal(await codeOf(connection.replicated(['k'])), 'engine_down')
  clearTimeout(alive)
  const [silent] = others
  t.ok(silent?.isClosed)
  const kept = codeOf(connection.replicated(['k']))
  await settled()
  await waiting(others[1]!)
  await others[1]!.answer(/^WAIT/, 1)
  t.equal(await kept, 'answered')
  t.equal(opened, 0)
  await connection.close()
})

/** As the library behind sentinels, which makes a command again after each failure. */
const library = (tries: number) => {
  const sent: string[] = []
  const answers: (Error | string)[] = []
  const client = {
    options: { socket: { host: 'one', port: 6379 } },
    sendCommand: async (args: unknown[]): Promise<unknown> => {
      sent.push(args.join(' '))
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  const execute = async (_isReadonly: unknown, ask: (one: typeof client) => Promise<unknown>): Promise<unknown> => {
    for (let left = tries; ; left--)
      try {
        return await ask(client)
      } catch (error) {
        if (left <= 1) throw error
      }
  }
  return { sent, answers, client, sentinel: { _execute: execute } as unknown as Parameters<typeof sentOnce>[0] }
}

test('behind sentinels a command is made once, unless a server has refused it as a replica', async (t) => {
  const { sent, answers, sentinel } = library(3)
  const send = sentOnce(sentinel, 60_000)
  answers.push(new Error('Socket closed unexpectedly'), 'again')
  await t.rejects(send(['INCR', 'a']), { message: 'Socket closed unexpectedly' })
  t.same(sent, ['INCR a'])
  answers.splice(0, 1, new ErrorReply('READONLY You cannot write against a read only replica.'), 'done')
  t.equal(await send(['INCR', 'b']), 'done')
  t.same(sent, ['INCR a', 'INCR b', 'INCR b'])
})

test('behind sentinels no command is made after its time, and no more wait than may', async (t) => {
  const { sent, sentinel } = library(1)
  await t.rejects(sentOnce(sentinel, -1)(['INCR', 'a']), { message: /within the time/ })
  t.same(sent, [])
  const never = { _execute: () => new Promise(() => undefined) } as unknown as typeof sentinel
  const send = sentOnce(never, 60_000)
  for (let i = 0; i < 10_000; i++) void send(['GET', 'a'])
  await t.rejects(send(['GET', 'a']), { message: /queue is full/ })
})

test('behind sentinels what belongs to one master is not sent to the next', async (t) => {
  const { sent, client, answers, sentinel } = library(2)
  const send = sentOnce(sentinel, 60_000)
  await send(['SET', 'row', '1'], 'one:6379')
  client.options.socket.host = 'two'
  await t.rejects(send(['SET', 'checkpoint', '1'], 'one:6379'), { message: /no longer the master/ })
  t.same(sent, ['SET row 1'])
  answers.push('done')
  t.equal(await send(['SET', 'checkpoint', '1'], 'two:6379'), 'done')
})
