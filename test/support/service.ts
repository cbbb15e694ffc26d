import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

// biome-ignore lint/suspicious/noExplicitAny: what any route answers
export type Json = any

export interface Service {
  url: string
  /** Its data folder. */
  data: string
  port: number
  process: ChildProcess
  /** Lines of standard output. */
  lines: string[]
  /** Ends with SIGKILL. */
  kill(): Promise<void>
  /** Ends with SIGTERM; answers the exit code. */
  stop(): Promise<number | null>
}

/** Limits end what hangs; on a busy machine all else takes many times as long as on an idle one. */
const LIMIT_MS = 240_000

const started = new Set<ChildProcess>()
// A test that fails before its teardown leaves no service behind.
process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL')
})

let undici: typeof import('undici') | undefined

/** Loading it takes 0.1 s of CPU: half of the tests that import this file start no service. */
const client = async (): Promise<typeof import('undici')> => (undici ??= await import('undici'))

/** Starts the compiled service on a data folder and waits until it is ready. Whoever starts it ends it. */
export const startService = async (
  data: string,
  flags: readonly string[] = [],
  port = 0,
  entry = 'dist/src/main.js',
  limitMs = LIMIT_MS,
  environment: { [variable: string]: string } = {},
): Promise<Service> => {
  const { request } = await client()
  const args = [entry, 'start', '--port', String(port), '--data', data, '--webhook-allow', '127.0.0.0/8', ...flags]
  // Benchmarks start it as `npm start` does.
  const options = process.env.TAP === '1' ? [] : ['--max-semi-space-size=64']
  // In the environment, so that a flag wins. All tests sign up from one address.
  const env = { ...process.env, WAYMARK_SIGNUPS_PER_ADDRESS: '1000', ...environment }
  const child = spawn(process.execPath, [...options, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env })
  started.add(child)
  child.once('exit', () => started.delete(child))
  const lines: string[] = []
  const errors: string[] = []
  child.stderr.on('data', (text) => errors.push(String(text)))
  const exited = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
  const url = await new Promise<string>((found, failed) => {
    const timer = setTimeout(
      () => failed(new Error(`not listening: ${errors.join('').slice(-800)} ${lines.slice(-5).join('\n')}`)),
      limitMs,
    )
    timer.unref()
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      if (!line.includes('"listening"')) return
      clearTimeout(timer)
      found((JSON.parse(line) as { url: string }).url)
    })
    exited.then((code) =>
      failed(new Error(`ended with ${code}: ${errors.join('').slice(-800)} ${lines.slice(-5).join('\n')}`)),
    )
  })
  await until('ready', async () => (await request(`${url}/readyz`)).statusCode === 200, limitMs)
  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> => {
    child.kill(signal)
    return exited
  }
  return {
    url,
    data,
    port: Number(new URL(url).port),
    process: child,
    lines,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  }
}

/** Waits for a condition by asking again and again. */
export const until = async (
  what: string,
  check: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
): Promise<void> => {
  const begun = Date.now()
  for (;;) {
    const found = check()
    if (await found) return
    const waitedMs = Date.now() - begun
    if (waitedMs > limitMs) throw new Error(`waited ${limitMs} ms for ${what}`)
    // What asks others is asked less often the longer it takes: a look at a page costs that 8 ms of CPU. Others advance a clock.
    const pauseMs = found instanceof Promise ? Math.max(20, Math.min(200, waitedMs / 20)) : 20
    await new Promise((resume) => setTimeout(resume, pauseMs))
  }
}

export interface Answer {
  status: number
  headers: { [name: string]: string | string[] | undefined }
  text: string
  json: Json
}

/** Calls the API below /api/v3, or a path at the root when it begins with two slashes. */
export const call = async (
  service: { url: string },
  method: string,
  path: string,
  options: { token?: string; body?: unknown; headers?: { [name: string]: string } } = {},
): Promise<Answer> => {
  const headers: { [name: string]: string } = { ...options.headers }
  if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
  const isText = typeof options.body === 'string' || options.body instanceof Uint8Array
  if (options.body !== undefined) headers['content-type'] ??= 'application/json'
  const url = path.startsWith('//') ? service.url + path.slice(1) : `${service.url}/api/v3${path}`
  const { request } = undici ?? (await client())
  const answer = await request(url, {
    method: method as 'GET',
    headers,
    body: options.body === undefined ? undefined : isText ? (options.body as string) : JSON.stringify(options.body),
  })
  const text = await answer.body.text()
  if (answer.headers['waymark-pending'] !== undefined) await caughtUp(service)
  return { status: answer.statusCode, headers: answer.headers, text, json: parsed(text) }
}

const CATCH_UP_LIMIT_MS = 30_000

/** On a slow machine a write may be answered before reads show it: waits until they do, where nothing holds them up. */
const caughtUp = async ({ url }: { url: string }): Promise<void> => {
  const { request } = await client()
  const isCaughtUp = async (): Promise<boolean> =>
    !/^waymark_consumer_lag_events\{.*\} [1-9]/m.test(await (await request(`${url}/metrics`)).body.text())
  await until('reads to follow', isCaughtUp, CATCH_UP_LIMIT_MS).catch(() => undefined)
}

/** Like `call`, but anything else than a success throws. */
export const ask = async (...args: Parameters<typeof call>): Promise<Json> => {
  const answer = await call(...args)
  if (answer.status >= 300) throw refusal(args[1], args[2], answer)
  return answer.json
}

const refusal = (method: string, path: string, { status, text }: Answer): Error =>
  Object.assign(new Error(`${method} ${path}: ${status} ${text.slice(0, 400)}`), { status })

let people = 0

/** Signs up a fresh organization and answers its owner's token. */
export const signUp = async (
  service: { url: string },
  name = 'Test',
): Promise<{ token: string; email: string; password: string; organizationId: string; hubId: string }> => {
  const email = `owner${++people}.${process.pid}@example.com`
  const password = 'Correct-horse-7-battery'
  const body = {
    name: 'Owner',
    email,
    password,
    organizationName: `${name} ${people}`,
    hubName: 'Main',
    hubLat: 52.2,
    hubLng: 21,
  }
  const answer = await ask(service, 'POST', '/auth/signup', { body })
  return {
    token: answer.token,
    email,
    password,
    organizationId: answer.data.organizationId,
    hubId: answer.data.hubId[0],
  }
}

/** Every row of a list as NDJSON. */
export const allRows = async (service: { url: string }, path: string, token: string): Promise<Json[]> => {
  const answer = await call(service, 'GET', `${path}${path.includes('?') ? '&' : '?'}format=ndjson`, { token })
  if (answer.status !== 200) throw refusal('GET', path, answer)
  return answer.text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

/** Every row of a paged list. */
export const allPages = async (service: { url: string }, path: string, token: string): Promise<Json[]> => {
  const rows: Json[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Json = await ask(
      service,
      'GET',
      `${path}${path.includes('?') ? '&' : '?'}limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      { token },
    )
    rows.push(...page.data)
    cursor = page.nextCursor
  }
  return rows
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const SAMPLES = 3

/** Waits for the tasks and records that a new organization is given, where a test counts what happens to its own. */
export const samplesMade = (service: { url: string }, token: string): Promise<void> =>
  until('the samples', async () => {
    const totals = await Promise.all(
      ['/tasks', '/data'].map(async (path) => (await ask(service, 'GET', path, { token })).total),
    )
    return totals.every((total) => total === SAMPLES)
  })
