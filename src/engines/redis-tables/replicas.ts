import { down } from './failures.ts'
import type { Client } from './clients.ts'

/** Time that a replica has to catch up. */
const WAIT_MS = 1_000
/** Oldest trusted answer on whether a server has replicas. */
const KNOWN_MS = 1_000
/** Life of a mark that was written only to be waited for. */
const MARK_MS = 60_000

type Connected = Awaited<ReturnType<Client['openAnother']>>

/**
 * Waits until replicas have all writes, each server over a connection of its own: a waiting one serves nothing else.
 * Callers during a wait share the next wait.
 */
export class Replicas {
  private readonly client: Client
  private readonly connections = new Map<string, Promise<Connected>>()
  private readonly waiting = new Map<string, Promise<void>>()
  private readonly next = new Map<string, Promise<void>>()
  private readonly known = new Map<string, { hasSome: boolean; atMs: number }>()
  private isClosed = false

  constructor(client: Client) {
    this.client = client
  }

  /** Resolves when a replica, if any, has all earlier writes to the server of `key`. @throws Failure engine_down */
  have(server: string, key: string): Promise<void> {
    const shared = this.next.get(server)
    if (shared !== undefined) return shared
    const before = this.waiting.get(server) ?? Promise.resolve()
    const own = before
      .catch(() => undefined)
      .then(() => {
        this.next.delete(server)
        const waiting = this.wait(server, key)
        this.waiting.set(server, waiting)
        return waiting
      })
    this.next.set(server, own)
    return own
  }

  close(): void {
    this.isClosed = true
    for (const connection of this.connections.values())
      connection.then(
        (open) => open.close(),
        () => undefined,
      )
    this.connections.clear()
  }

  private async wait(server: string, key: string): Promise<void> {
    try {
      const connection = await this.connectionTo(server)
      if (!(await this.hasSome(server, connection))) return
      // WAIT covers the writes of its own connection, which come after all earlier ones.
      await connection.sendCommand(['SET', `${key}:waited`, '1', 'PX', String(MARK_MS)])
      const replicas = Number(await connection.sendCommand(['WAIT', '1', String(WAIT_MS)]))
      if (replicas > 0) return
      this.known.delete(server)
    } catch (error) {
      this.connections.get(server)?.then(
        (open) => open.close(),
        () => undefined,
      )
      this.connections.delete(server)
      throw error
    }
    throw down(new Error(`no replica of ${server} follows within ${WAIT_MS} ms`))
  }

  private connectionTo(server: string): Promise<Connected> {
    if (this.isClosed) throw down()
    const known = this.connections.get(server)
    if (known !== undefined) return known
    const opening = this.client.openAnother(server)
    this.connections.set(server, opening)
    return opening
  }

  private async hasSome(server: string, connection: Connected): Promise<boolean> {
    const known = this.known.get(server)
    if (known !== undefined && performance.now() - known.atMs < KNOWN_MS) return known.hasSome
    const info = String(await connection.sendCommand(['INFO', 'replication']))
    const hasSome = /state=online/.test(info)
    this.known.set(server, { hasSome, atMs: performance.now() })
    return hasSome
  }
}
