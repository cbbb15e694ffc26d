import { mkdtempSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { openPort, type PortOptions } from '../../src/ingress/port.ts'
import { startIngress } from '../../src/ingress/server.ts'
import type { AccessChange, Ingress, IngressOptions } from '../../src/ingress/options.ts'
import type { Caller, UserCaller } from '../../src/kernel/caller.ts'
import { Failure } from '../../src/kernel/errors.ts'
import type { Logger } from '../../src/kernel/logger.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { openKeyring } from '../../src/kit/keys/keyring-file.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../src/kit/http/route.ts'
import { folderOf } from '../support/folder-of.ts'

export interface Door {
  ingress: Ingress
  url: string
  port: number
  /** What tokens stand for; a test takes one away to revoke it. */
  callers: Map<string, Caller>
  change(change: AccessChange): void
  lines: { level: string; msg: string; fields?: { [name: string]: unknown } }[]
  tables: TableStore
  /** Calls below /api/v3. */
  call(
    method: string,
    path: string,
    init?: { token?: string; body?: unknown; headers?: { [name: string]: string } },
  ): Promise<Called>
}

export interface Called {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  body: any
}

export const user = (change: Partial<UserCaller> = {}): UserCaller => ({
  kind: 'user',
  organizationId: 'org-1',
  userId: 'user-1',
  identityId: 'identity-1',
  email: 'ada@example.org',
  jti: 'jti-1',
  expiresAt: Date.now() + 3_600_000,
  roleId: 'role-1',
  permissions: new Set(['view/hub']),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
  ...change,
})

/** Opens a real door on a free port, with real tables and keys; it closes with the test. */
export const openDoor = async (
  t: Test,
  options: Partial<IngressOptions> = {},
  portOptions: Partial<PortOptions> = {},
): Promise<Door> => {
  const port = await openPort({ host: '127.0.0.1', port: 0, ...portOptions })
  const folder = mkdtempSync(`${folderOf(t)}/door-`)
  const tables = options.tables ?? (await openLmdbTableStore({ path: `${folder}/tables`, clock: systemClock }))
  const callers = new Map<string, Caller>([
    ['good', user()],
    ['other', user({ organizationId: 'org-2', userId: 'user-2', jti: 'jti-2', permissions: new Set() })],
    ['device', { kind: 'tracker', organizationId: 'org-1', trackerId: 'tracker-1' }],
  ])
  const listeners = new Set<(change: AccessChange) => void>()
  const lines: Door['lines'] = []
  const metrics = createMetrics()
  const closeOwn = async (): Promise<void> => {
    metrics.close()
    if (options.tables === undefined) await tables.close()
  }
  const ingress = await startIngress(port, {
    routes: [],
    channels: [],
    channelDocuments: [],
    webhookDocuments: [],
    info: { title: 'Test', version: '3.0.0', description: 'A door.' },
    authenticate: async (token) => {
      const caller = callers.get(token)
      if (caller === undefined) throw new Failure('unauthenticated')
      return caller
    },
    accessChanged: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    settle: async () => true,
    rollout: () => true,
    tables,
    keyring: await openKeyring(`${folder}/keys.json`),
    life: { node: 'here', id: 'now' },
    logger: loggerTo(lines),
    clock: systemClock,
    metrics,
    ...options,
  }).catch(async (error: unknown) => {
    port.stopListening()
    port.close()
    await closeOwn()
    throw error
  })
  t.teardown(async () => {
    await ingress.close()
    await closeOwn()
  })
  return {
    ingress,
    port: port.port,
    url: port.url,
    callers,
    change: (change) => void [...listeners].map((listener) => listener(change)),
    lines,
    tables,
    call: callOf(port.url),
  }
}

const callOf =
  (url: string): Door['call'] =>
  async (method, path, { token, body, headers } = {}) => {
    const answer = await fetch(`${url}/api/v3${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      body: answer.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text,
    }
  }

const loggerTo = (lines: Door['lines']): Logger => {
  const note = (level: string) => (msg: string, fields?: { [name: string]: unknown }) =>
    void lines.push({ level, msg, fields })
  return { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
}

/** A route with the parts that a test does not care about. */
export const simpleRoute = (
  declaration: Partial<Route>,
  handler: (request: RouteRequest) => Promise<Reply> = async () => ({ body: { data: null } }),
): Route =>
  route({
    method: 'GET',
    path: '/thing',
    operationId: `${declaration.method ?? 'GET'}${declaration.path ?? '/thing'}`,
    summary: 'A thing',
    tag: 'Things',
    access: 'public',
    answers: { 200: { description: 'It.' } },
    ...declaration,
    handler: handler as never,
  })

export interface RawClient {
  socket: Socket
  send(text: string | Uint8Array): void
  /** Resolves with all that came so far, once it matches or the connection has ended. */
  until(pattern: RegExp): Promise<string>
  closed: Promise<string>
}

/** A client that speaks bytes. */
export const rawClient = async (t: Test, door: Door): Promise<RawClient> => {
  const socket = connect(door.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let text = ''
  const wake = new Set<() => void>()
  const changed = (): void => void [...wake].map((run) => run())
  let isClosed = false
  socket.on('data', (data) => {
    text += data.toString('latin1')
    changed()
  })
  socket.on('error', () => undefined)
  const closed = new Promise<string>((resolve) => {
    socket.on('close', () => {
      isClosed = true
      changed()
      resolve(text)
    })
  })
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  const until = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(text) && !isClosed) {
      await new Promise<void>((resolve) => {
        const run = (): void => {
          wake.delete(run)
          resolve()
        }
        wake.add(run)
      })
    }
    return text
  }
  return { socket, send: (bytes) => void socket.write(bytes), until, closed }
}

export const waitFor = async (condition: () => boolean, message: string, timeoutMs = 240_000): Promise<void> => {
  const end = Date.now() + timeoutMs
  while (!condition()) {
    if (Date.now() > end) throw new Error(`waited in vain: ${message}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
