import { readdirSync, rmSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { Session } from 'chdb'
import { makeFolder } from '../make-folder.ts'
import { quoteString } from './parameters.ts'
import { counted, endCall, ending, heldOpen } from './native-calls.ts'
import { CREDIT, type Reply, type Request, type WorkerData } from './protocol.ts'
import { headerLength } from './chunks.ts'
import { lowerBackgroundThreads } from './threads.ts'
import { ThreadTurns, type ThreadUser } from './turns.ts'

/**
 * Holds every session of the engine in process. One session runs one query at a time, so commands and inserts share the
 * writer's, one after the other, and each open query has its own. A query whose reader is slow holds a session but no
 * thread: only `READERS` native calls run at once.
 */
const { path, scratchPath, engineArguments, calls } = workerData as WorkerData
const port = parentPort!
/** Concurrent native calls for queries, beside the writer's one. */
const READERS = 2
const KILL_PAUSE_MS = 50
const KILL_AGE_MS = 400

interface Running extends ThreadUser {
  tag: string
  credit: number
  resume: (() => void) | undefined
  cancelled: boolean
  late: boolean
  inNative: boolean
  /** Time at which its native work began. */
  since: number
  failed: boolean
}

const running = new Map<number, Running>()
const idle: Session[] = []
const turns = new ThreadTurns(READERS, () => performance.now())
let writes: Promise<void> = Promise.resolve()
let kills: Promise<unknown> = Promise.resolve()

makeFolder(scratchPath)
for (const name of readdirSync(scratchPath)) if (/^insert-/.test(name)) rmSync(join(scratchPath, name), { force: true })
const openSession = (): Session => new Session(path, { connectionArgs: engineArguments })
const writer = openSession()
const control = openSession()
endCall(calls)

port.on('message', (request: Request) => {
  if (request.kind === 'command' || request.kind === 'insert') writes = writes.then(() => write(request))
  else if (request.kind === 'query') void heldOpen(calls, () => query(request))
  else if (request.kind === 'pull') pull(request.id)
  else if (request.kind === 'cancel') cancel(request.id, false)
  else if (request.kind === 'close') void close()
  else throw new Error('crashed as asked')
})
// A thread that ends during a native call takes the whole process with it: so it ends only after them.
process.on('uncaughtException', (error) => {
  port.removeAllListeners('message')
  send({ kind: 'dying', message: error.message })
  void settle().finally(() => process.exit(1))
})
void ending(calls).then(() => {
  for (const id of running.keys()) cancel(id, false)
})
send({ kind: 'ready' })

function send(reply: Reply, transfer: ArrayBuffer[] = []): void {
  port.postMessage(reply, transfer)
}

async function write(request: Extract<Request, { kind: 'command' | 'insert' }>): Promise<void> {
  try {
    if (request.kind === 'command') await command(request.sql)
    else await insert(request)
    send({ kind: 'end', id: request.id })
  } catch (error) {
    fail(request.id, error)
  }
}

async function command(sql: string): Promise<void> {
  await counted(calls, () => writer.queryAsync(sql))
  lowerBackgroundThreads() // the first table starts them
}

async function insert({ id, table, token, block }: Extract<Request, { kind: 'insert' }>): Promise<void> {
  const file = join(scratchPath, `insert-${id}.native`)
  try {
    await writeFile(file, block)
    const sql =
      `INSERT INTO ${table} SELECT * FROM file(${quoteString(file)}, 'Native') ` +
      `SETTINGS insert_deduplication_token = ${quoteString(token)}, max_partitions_per_insert_block = 0`
    await counted(calls, () => writer.queryAsync(sql))
  } finally {
    await rm(file, { force: true })
  }
}

async function query(request: Extract<Request, { kind: 'query' }>): Promise<void> {
  const { id, deadlineMs } = request
  const state: Running = {
    tag: `waymark-${process.pid}-${id}`,
    credit: CREDIT,
    resume: undefined,
    cancelled: false,
    late: false,
    inNative: false,
    since: 0,
    usedMs: 0,
    failed: false,
  }
  running.set(id, state)
  let session: Session | undefined
  try {
    session = idle.pop() ?? (await counted(calls, async () => openSession()))
    const chunks = streamChunks(session, request, state)
    for (;;) {
      while (state.credit === 0 && !state.cancelled) await new Promise<void>((resume) => (state.resume = resume))
      if (state.cancelled) break
      const next = await withinDeadline(id, deadlineMs, () => chunks.next())
      if (next.done || state.cancelled) break
      state.credit--
      sendChunk(id, next.value)
    }
    await chunks.return(undefined)
    if (state.late) throw new Error('the query was ended at its deadline')
    send({ kind: 'end', id })
  } catch (error) {
    state.failed = true
    if (state.cancelled && !state.late) send({ kind: 'end', id })
    else fail(id, error, state.late)
  } finally {
    running.delete(id)
    // A stream that failed or was killed keeps its query in the engine until the session is closed.
    if (state.failed || state.cancelled) session?.close()
    else if (session !== undefined) idle.push(session)
  }
}

async function* streamChunks(
  session: Session,
  request: Extract<Request, { kind: 'query' }>,
  state: Running,
): AsyncGenerator<Uint8Array, void, undefined> {
  const sql = `/* ${state.tag} */ ${request.sql}`
  const stream = await counted(calls, async () => session.queryStream(sql, { format: request.format }))
  const chunks = stream[Symbol.asyncIterator]()
  let header: number | undefined
  try {
    for (;;) {
      const next = await inNative(state, () => chunks.next())
      if (next.done) return
      const bytes = next.value.raw()
      // Each chunk is formatted by itself, with its own header: only the first one's is kept.
      if (header === undefined) {
        header = headerLength(request.format, bytes)
        yield bytes
      } else yield bytes.subarray(header)
    }
  } finally {
    await chunks.return?.()
  }
}

async function inNative<Answer>(state: Running, call: () => Promise<Answer>): Promise<Answer> {
  return turns.run(state, async () => {
    if (state.cancelled) throw new Error('the query was ended')
    state.inNative = true
    state.since ||= performance.now()
    try {
      return await counted(calls, call)
    } finally {
      state.inNative = false
    }
  })
}

async function withinDeadline<Answer>(id: number, deadlineMs: number, call: () => Promise<Answer>): Promise<Answer> {
  const timer = setTimeout(() => cancel(id, true), deadlineMs)
  try {
    return await call()
  } finally {
    clearTimeout(timer)
  }
}

function sendChunk(id: number, bytes: Uint8Array): void {
  // The engine's own memory cannot be handed over between threads; a copy can.
  const copy = new Uint8Array(bytes)
  send({ kind: 'chunk', id, bytes: copy }, [copy.buffer])
}

function pull(id: number): void {
  const state = running.get(id)
  if (state === undefined) return
  state.credit++
  state.resume?.()
}

function cancel(id: number, late: boolean): void {
  const state = running.get(id)
  if (state === undefined || state.cancelled) return
  state.cancelled = true
  state.late = late
  state.resume?.()
  kills = Promise.all([kills, kill(id, state)])
}

/**
 * Ends the native call of a query that does not return soon. A KILL that meets a query during its setup can hang for
 * ever in the engine, hence the age.
 */
async function kill(id: number, state: Running): Promise<void> {
  try {
    while (state.inNative) {
      if (performance.now() - state.since > KILL_AGE_MS) {
        const sql = `KILL QUERY WHERE startsWith(query, '/* ${state.tag} */') ASYNC`
        const killed = await counted(calls, () => control.queryAsync(sql, { format: 'JSONEachRow' }))
        if (killed.text() !== '') return
      }
      await new Promise((resume) => setTimeout(resume, KILL_PAUSE_MS))
    }
  } catch (error) {
    fail(id, error)
  }
}

function fail(id: number, error: unknown, late = false): void {
  const message = error instanceof Error ? error.message : String(error)
  const [, code] = /Code: (\d+)\./.exec(message) ?? []
  send({ kind: 'failed', id, message, late, code: code === undefined ? undefined : Number(code) })
}

async function close(): Promise<void> {
  await settle()
  for (const session of [...idle, control, writer]) session.close()
  send({ kind: 'closed' })
  port.close()
}

/** Ends running queries and waits for their end. */
async function settle(): Promise<void> {
  for (const id of running.keys()) cancel(id, false)
  await writes
  while (running.size > 0) await new Promise((resume) => setTimeout(resume, 5))
  await kills
}
