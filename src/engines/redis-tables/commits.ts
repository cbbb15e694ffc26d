import { breathe } from '../../kernel/breath.ts'
import { setTimeout as pause } from 'node:timers/promises'
import type { Row, RowChange } from '../../kernel/table.ts'
import { type CheckpointMove, StaleCommit } from '../table-store.ts'
import type { Argument } from './clients.ts'
import type { RedisConnection } from './connection.ts'
import {
  assertId,
  checkpointOf,
  checkpointText,
  consumerKeys,
  type KnownTable,
  placeKeys,
  type Places,
  tableKeys,
} from './places.ts'
import type { Registry } from './registry.ts'
import { packRow, termsOf } from './terms.ts'

/** Rows that one call stores: the server serves nobody else meanwhile. */
const STEP_ROWS = 32
/** Of rows and their index terms, after which no further row comes into the step. */
const STEP_BYTES = 16 * 1024
const WAIT_MS = 2
/** Places that a commit writes at the same time: each answer is waited for, and takes a turn of a busy event loop. */
const PLACES_AT_ONCE = 16

/** Writes, those of one place in the order in which they were asked for. Rows of all places come before their checkpoint. */
export class Commits {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly registry: Registry
  /** The last write of each place. */
  private readonly tails = new Map<string, Promise<unknown>>()

  constructor(connection: RedisConnection, places: Places, registry: Registry) {
    this.connection = connection
    this.places = places
    this.registry = registry
  }

  async commit(changes: readonly RowChange[], move?: CheckpointMove): Promise<void> {
    const groups = new Map<string, RowChange[]>()
    for (const change of changes) {
      const table = this.registry.tableOf(change.table)
      assertId(change.id)
      const { lives } = table.declaration
      if (lives === 'partition' && move !== undefined && change.scope !== move.consumer)
        throw new Error(`rows of ${change.table} in ${change.scope} are not ${move.consumer}'s`)
      const key =
        lives === 'row' ? this.places.ofRow(table, change.scope, change.id) : this.places.ofScope(table, change.scope)
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [change])
      else group.push(change)
    }
    const own = move === undefined ? undefined : this.places.ofConsumer(move.consumer)
    const keys = own === undefined || groups.has(own) ? [...groups.keys()] : [...groups.keys(), own]
    await this.inTurn(keys, () => this.apply(groups, own, move))
  }

  async inTurn<Answer>(keys: readonly string[], run: () => Promise<Answer>): Promise<Answer> {
    const before = Promise.all(keys.map((key) => this.tails.get(key)))
    const own = before.then(run)
    const tail = own.catch(() => undefined)
    for (const key of keys) this.tails.set(key, tail)
    try {
      return await own
    } finally {
      for (const key of keys) if (this.tails.get(key) === tail) this.tails.delete(key)
    }
  }

  private async apply(
    groups: ReadonlyMap<string, RowChange[]>,
    own: string | undefined,
    move: CheckpointMove | undefined,
  ): Promise<void> {
    const others = [...groups].filter(([key]) => key !== own)
    if (move !== undefined && own !== undefined && others.length > 0) {
      const args = [checkpointText(move.from), String(move.fence), checkpointText(move.at)]
      if (this.isDone(move, await this.connection.fcall('check', [own, ...consumerKeys(own)], args))) return
    }
    for (let at = 0; at < others.length; at += PLACES_AT_ONCE)
      await all(
        others
          .slice(at, at + PLACES_AT_ONCE)
          .map(([key, changes]) =>
            this.registry.tableOf(changes[0].table).declaration.lives === 'row'
              ? this.storeSingle(key, changes)
              : this.storePlace(key, changes, move, false),
          ),
      )
    await this.replicated(others, move)
    if (move !== undefined && own !== undefined) await this.storePlace(own, groups.get(own) ?? [], move, true)
  }

  /**
   * A failover must not forget rows whose checkpoint another server keeps, nor rows that no log can bring back. Rows and
   * checkpoint on one server are forgotten together.
   */
  private async replicated(others: readonly [string, RowChange[]][], move: CheckpointMove | undefined): Promise<void> {
    const isSplit = move?.at !== undefined && this.connection.isCluster
    const own = others.filter(([, [{ table }]]) => isSplit || this.registry.tableOf(table).declaration.lives === 'row')
    if (own.length > 0) await this.connection.replicated(own.map(([key]) => key))
  }

  private async storePlace(
    key: string,
    changes: readonly RowChange[],
    move: CheckpointMove | undefined,
    isOwn: boolean,
  ): Promise<void> {
    for (const { table, scope } of changes) await this.registry.noteScope(this.registry.tableOf(table), scope)
    const from = checkpointText(move?.from)
    const at = checkpointText(move?.at)
    const tables = new Set(changes.map(({ table }) => this.registry.tableOf(table)))
    const keys = [...placeKeys(key), ...consumerKeys(key), ...[...tables].flatMap((table) => tableKeys(key, table))]
    const head = [move?.consumer ?? '', String(move?.fence ?? 0)]
    for (let start = 0; start === 0 || start < changes.length; ) {
      if (start > 0) await breathe()
      const rows: Argument[] = []
      let end = start
      for (let bytes = 0; end < changes.length && end - start < STEP_ROWS && bytes < STEP_BYTES; end++) {
        const change = this.changeArguments(changes[end])
        bytes += change.reduce((sum, { length }) => sum + length, 0)
        rows.push(...change)
      }
      const isLast = end >= changes.length
      const step = start === 0 ? (isLast ? 'only' : 'first') : isLast ? 'last' : 'next'
      const answer = await this.step(keys, [...head, step, isOwn ? '1' : '0', from, at, ...rows])
      if (move !== undefined && this.isDone(move, answer)) return
      start = Math.max(end, start + 1)
    }
  }

  private async step(keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    for (;;) {
      const answer = await this.connection.fcall('commit', keys, args)
      if (String((answer as Buffer[])[0]) !== 'wait') return answer
      await pause(WAIT_MS)
    }
  }

  private async storeSingle(key: string, changes: readonly RowChange[]): Promise<void> {
    const { row, expiresAt } = changes.at(-1)!
    const ends = expiresAt === undefined ? [] : ['PXAT', String(Math.max(1, Math.floor(expiresAt)))]
    await this.connection.call(key, row === null ? ['DEL', key] : ['SET', key, packRow(row), ...ends])
  }

  /** Whether the move was made before. @throws StaleCommit */
  private isDone(move: CheckpointMove, answer: unknown): boolean {
    const [status, at = '', fence = '0'] = (answer as Buffer[]).map(String)
    if (status === 'stale') throw new StaleCommit(move.consumer, { at: checkpointOf(at), fence: Number(fence) })
    return status === 'done'
  }

  private changeArguments(change: RowChange): Argument[] {
    const table = this.registry.tableOf(change.table)
    if (change.row === null) return [table.generation, change.id, '0', '', '']
    return [table.generation, change.id, ...rowArguments(table, change as RowChange & { row: Row })]
  }
}

export const rowArguments = (
  { declaration }: KnownTable,
  { id, row, expiresAt }: RowChange & { row: Row },
): [string, Buffer, Buffer] => [
  expiresAt === undefined ? '0' : String(Math.max(1, Math.floor(expiresAt))),
  packRow(row),
  termsOf(declaration, id, row),
]

/** Resolves when all have; where some failed, rejects with the first failure once all have ended. */
const all = async (writes: readonly Promise<void>[]): Promise<void> => {
  for (const ended of await Promise.allSettled(writes)) if (ended.status === 'rejected') throw ended.reason
}
