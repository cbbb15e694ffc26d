import { connect, type Socket } from 'node:net'
import { waitedMsOf } from './process-figures.ts'

/** Requests of a process of its own: `node http-generator.js '<plan as JSON>'` prints a `HttpResult`. */
export interface HttpPlan {
  port: number
  token: string
  /** Paths, one after the other. */
  paths: string[]
  method: 'GET' | 'PATCH'
  /** The member that a PATCH gives another text each time; default `name`. */
  member?: string
  connections: number
  /** Requests a second at an even pace; without it each connection sends the next one as soon as it is answered. */
  perSecond?: number
  warmupMs: number
  measureMs: number
}

export interface HttpResult {
  perSecond: number
  /** ms, from the time when a request was due; so one that waits for a connection counts in full. */
  p50: number
  p99: number
  refused: number
  /** Delay of the generator for due requests while a connection was idle, ms: its own, which is in the times too. */
  lateP99: number
  /** Time for which the generator itself waited for a core, ms; it is in the times too. */
  waitedMs: number
}

const HEAD_END = Buffer.from('\r\n\r\n')

/** One request at a time over a bare TCP socket: Node's own client costs more than the service that it drives. */
class Connection {
  private readonly socket: Socket
  private rest: Buffer = Buffer.alloc(0)
  private onAnswer: (status: number) => void = () => {}

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (chunk) => this.read(chunk))
    this.socket.on('error', (error) => {
      throw error
    })
  }

  send(request: string, onAnswer: (status: number) => void): void {
    this.onAnswer = onAnswer
    this.socket.write(request)
  }

  close(): void {
    this.socket.destroy()
  }

  private read(chunk: Buffer): void {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    const end = this.rest.indexOf(HEAD_END)
    if (end < 0) return
    const head = this.rest.toString('latin1', 0, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.rest.length < end + 4 + length) return
    this.rest = this.rest.subarray(end + 4 + length)
    this.onAnswer(Number(head.slice(9, 12)))
  }
}

const run = async (plan: HttpPlan): Promise<HttpResult> => {
  const { port, token, paths, method, perSecond, warmupMs, measureMs } = plan
  const idle = Array.from({ length: plan.connections }, () => new Connection(port))
  const all = [...idle]
  const times: number[] = []
  const late: number[] = []
  let [sent, answered, refused] = [0, 0, 0]
  const begun = performance.now()
  const waitedBefore = waitedMsOf(process.pid)
  const measuredFrom = begun + warmupMs
  const end = measuredFrom + measureMs
  const requestOf = (n: number): string => {
    const body = method === 'GET' ? '' : JSON.stringify({ [plan.member ?? 'name']: `Name ${n}` })
    const length = method === 'GET' ? '' : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
    return `${method} ${paths[n % paths.length]} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\n${length}\r\n${body}`
  }
  const ask = (connection: Connection, dueAt: number): void => {
    connection.send(requestOf(sent++), (status) => {
      const now = performance.now()
      if (status !== 200) refused++
      if (now >= measuredFrom && now < end) {
        answered++
        times.push(now - dueAt)
      }
      if (perSecond === undefined && now < end) ask(connection, now)
      else idle.push(connection)
    })
  }
  if (perSecond === undefined) for (const connection of idle.splice(0)) ask(connection, performance.now())
  else {
    await pace(perSecond, begun, end, idle, (connection, dueAt, isOwn) => {
      if (isOwn && dueAt >= measuredFrom) late.push(performance.now() - dueAt)
      ask(connection, dueAt)
    })
  }
  while (performance.now() < end || idle.length < all.length) await new Promise((done) => setTimeout(done, 20))
  for (const connection of all) connection.close()
  const waitedMs = waitedMsOf(process.pid) - waitedBefore
  return {
    perSecond: answered / (measureMs / 1000),
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    lateP99: quantile(late, 0.99),
    refused,
    waitedMs,
  }
}

const quantile = (values: number[], share: number): number =>
  values.sort((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

/** A due request without a connection waits, and its time runs on; requests due then are not the generator's delay. */
const pace = async (
  perSecond: number,
  begun: number,
  end: number,
  idle: Connection[],
  ask: (connection: Connection, dueAt: number, isOwn: boolean) => void,
): Promise<void> => {
  let due = 0
  let isWaited = false
  while (performance.now() < end) {
    const shouldBe = Math.floor(((performance.now() - begun) / 1000) * perSecond)
    while (due < shouldBe && idle.length > 0)
      ask(idle.shift() as Connection, begun + (++due / perSecond) * 1000, !isWaited)
    isWaited = due < shouldBe
    await new Promise((done) => setTimeout(done, 1))
  }
}

const result = await run(JSON.parse(process.argv[2]) as HttpPlan)
process.stdout.write(JSON.stringify(result))
