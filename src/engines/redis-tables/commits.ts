import { allEnded } from '../../kernel/all-ended.ts'
import { breathe } from '../../kernel/breath.ts'
import { setTimeout as pause } from 'node:timers/promises'
import type { RowChange } from '../../kernel/table.ts'
import { type CheckpointMove, StaleCommit } from '../table-store.ts'
import { Budget } from './budget.ts'
import { newToken } from './changes.ts'
import type { Argument } from './clients.ts'
import type { RedisConnection } from './connection.ts'
import { down } from './failures.ts'
import { assertId, checkpointOf, checkpointText, consumerKeys, placeKeys, type Places, tableKeys } from './places.ts'
import type { Registry } from './registry.ts'
import { endOf, type Step, STEP_COST, stepsOf } from './steps.ts'
import { packed } from './terms.ts'

const WAIT_MS = 2
/** Work given to a server at once, in the units of steps: readers may have to wait that long behind commits. */
const COST_AT_ONCE = 1_500
/** Places that a commit writes at the same time: each answer is awaited, and takes a turn of a busy event loop. */
const PLACES_AT_ONCE = 64

/** Rows of a commit that may go with its checkpoint in one call: more cost more than one call may. */
const WHOLE_ROWS_MAX = 48

/** Writes, those of one place in the order of their requests. Rows of all places come before their checkpoint. */
export class Commits {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly registry: Registry
  /** The last write of each place. */
  private readonly tails = new Map<string, Promise<unknown>>()
  private readonly budgets = new Map<string, Budget>()
  /** Places written by a consumer that no replica is known to have, with the server that they were written on. */
  private readonly unsure = new Map<string, Map<string, string>>()
  /** Number of commits begun, those of one consumer one after the other. */
  private turn = 0

  constructor(connection: RedisConnection, places: Places, registry: Registry) {
    this.connection = connection
    this.places = places
    this.registry = registry
  }

  async commit(changes: readonly RowChange[], move?: CheckpointMove): Promise<void> {
    const groups = new Map<string, RowChange[]>()
    for (const change of changes) {
      const table = this.registry.writable(change.table)
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
    const turn = ++this.turn
    // The master may be replaced between the rows and their checkpoint: the next one need not have the rows.
    const server = move !== undefined && others.length > 0 ? this.connection.serverOf(own ?? '') : undefined
    const way: Way = { turn, move, server }
    if (move !== undefined && own !== undefined && others.length > 0) {
      if (await this.storeWhole(groups, own, way, move)) return
      const args = [checkpointText(move.from), String(move.fence), checkpointText(move.at)]
      if (this.isDone(move, await this.connection.fcall('check', [own, ...consumerKeys(own)], args, server))) return
    }
    const isSplit = move !== undefined && this.connection.isCluster
    if (isSplit) this.noteUnsure(move.consumer, others)
    for (let at = 0; at < others.length; at += PLACES_AT_ONCE)
      await allEnded(
        others
          .slice(at, at + PLACES_AT_ONCE)
          .map(([key, changes]) =>
            this.registry.tableOf(changes[0].table).declaration.lives === 'row'
              ? this.storeSingle(key, changes, server)
              : this.storePlace(key, changes, way),
          ),
      )
    // Rows stored without a checkpoint are ensured with the next one.
    if (isSplit && move.at !== undefined) await this.makeSure(move.consumer)
    else await this.replicatedAlone(others)
    if (move !== undefined && own !== undefined) await this.storePlace(own, groups.get(own) ?? [], way, true)
  }

  /** Stores a small commit of several places in one call, where one server has them all; false where it does not. */
  private async storeWhole(
    groups: ReadonlyMap<string, RowChange[]>,
    own: string,
    { turn, server }: Way,
    move: CheckpointMove,
  ): Promise<boolean> {
    if (this.connection.isCluster) return false
    const rows = [...groups.values()].reduce((sum, { length }) => sum + length, 0)
    const livesAlone = ([{ table }]: RowChange[]): boolean => this.registry.tableOf(table).declaration.lives === 'row'
    if (rows > WHOLE_ROWS_MAX || [...groups.values()].some(livesAlone)) return false
    await breathe()
    const args: Argument[] = []
    let cost = 0
    for (const place of [own, ...[...groups.keys()].filter((key) => key !== own)]) {
      const changes = groups.get(place) ?? []
      const [step] = stepsOf(changes, (name) => this.registry.tableOf(name))
      cost += step.cost
      if (!step.isLast || cost > STEP_COST) return false
      args.push(place, String(step.changes.length / 2), ...step.changes)
      const tables = new Set(changes.map(({ table }) => this.registry.tableOf(table)))
      for (const table of tables) await this.registry.noteScope(table, changes[0].scope)
    }
    const moved = [move.consumer, String(move.fence), checkpointText(move.from), checkpointText(move.at)]
    const all = [...moved, newToken(), String(turn), ...args]
    const answer = await this.step('commit_whole', this.budgetOf(own), cost, [own], all, server)
    assertInPlace(answer)
    this.isDone(move, answer)
    return true
  }

  private noteUnsure(consumer: string, others: readonly [string, RowChange[]][]): void {
    const places = this.unsure.get(consumer) ?? new Map<string, string>()
    for (const [key] of others) if (!places.has(key)) places.set(key, this.connection.serverOf(key))
    if (places.size > 0) this.unsure.set(consumer, places)
  }

  /**
   * A failover must not forget rows whose checkpoint another server keeps, nor rows that no log can restore. Rows and
   * checkpoint on one server are forgotten together. Writes of a failed commit count too: its consumer may have found
   * those rows since, and written nothing again.
   */
  private async makeSure(consumer: string): Promise<void> {
    const places = this.unsure.get(consumer)
    if (places === undefined) return
    if ([...places].some(([key, server]) => this.connection.serverOf(key) !== server)) {
      this.unsure.delete(consumer)
      throw down(new Error('a server gave its place to another one before a replica is known to have what was written'))
    }
    await this.connection.replicated([...places.keys()])
    this.unsure.delete(consumer)
  }

  private async replicatedAlone(others: readonly [string, RowChange[]][]): Promise<void> {
    const own = others.filter(([, [{ table }]]) => this.registry.tableOf(table).declaration.lives === 'row')
    if (own.length > 0) await this.connection.replicated(own.map(([key]) => key))
  }

  private async storePlace(
    key: string,
    changes: readonly RowChange[],
    { turn, move, server }: Way,
    isOwn = false,
  ): Promise<void> {
    const tables = [...new Set(changes.map(({ table }) => this.registry.tableOf(table)))]
    for (const table of tables) await this.registry.noteScope(table, changes[0].scope)
    const keys = [...placeKeys(key), ...consumerKeys(key), ...tables.flatMap((table) => tableKeys(key, table))]
    const of = [move?.consumer ?? '', String(move?.fence ?? 0)]
    const moved = [isOwn ? '1' : '0', checkpointText(move?.from), checkpointText(move?.at)]
    const budget = this.budgetOf(key)
    /** The move was made before, or a step failed. */
    let isOver = false
    const store = async (step: Step): Promise<void> => {
      try {
        const answer = await this.step(
          'commit',
          budget,
          step.cost,
          keys,
          [...of, nameOf(step), ...moved, newToken(), String(turn), ...step.changes],
          server,
        )
        assertInPlace(answer)
        if (move !== undefined && this.isDone(move, answer)) isOver = true
      } catch (error) {
        isOver = true
        throw error
      }
    }
    // Steps between the first and the last are sent without waiting: the order of storing them does not matter.
    const between: Promise<void>[] = []
    await breathe()
    for (const step of stepsOf(changes, (name) => this.registry.tableOf(name))) {
      if (step.isLast) await allEnded(between)
      if (isOver) break
      const stored = store(step)
      if (step.isFirst || step.isLast) await stored
      else {
        stored.catch(() => undefined) // `allEnded` reports it
        between.push(stored)
        await budget.room()
      }
      await breathe()
    }
    await allEnded(between)
  }

  private budgetOf(key: string): Budget {
    const server = this.connection.serverOf(key)
    const budget = this.budgets.get(server) ?? new Budget(COST_AT_ONCE)
    this.budgets.set(server, budget)
    return budget
  }

  private async step(
    name: 'commit' | 'commit_whole',
    budget: Budget,
    cost: number,
    keys: readonly string[],
    args: readonly Argument[],
    server: string | undefined,
  ): Promise<unknown> {
    for (;;) {
      await budget.take(cost)
      const answer = await this.connection
        .fcall(name, keys, args, server)
        .catch((error: unknown) => {
          budget.letAll()
          throw error
        })
        .finally(() => budget.giveBack(cost))
      if (String((answer as Buffer[])[0]) !== 'wait') return answer
      await pause(WAIT_MS)
    }
  }

  private async storeSingle(key: string, changes: readonly RowChange[], server: string | undefined): Promise<void> {
    const { row, expiresAt } = changes.at(-1)!
    const ends = expiresAt === undefined ? [] : ['PXAT', endOf(expiresAt)]
    await this.connection.call(key, row === null ? ['DEL', key] : ['SET', key, packed(row), ...ends], server)
  }

  /** Whether the move was made before. @throws StaleCommit */
  private isDone(move: CheckpointMove, answer: unknown): boolean {
    const [status, at = '', fence = '0'] = (answer as Buffer[]).map(String)
    if (status === 'late') throw down(new Error('a later commit has come before it'))
    if (status === 'stale') throw new StaleCommit(move.consumer, { at: checkpointOf(at), fence: Number(fence) })
    return status === 'done'
  }
}

/** The way in which the steps of one commit are stored. */
interface Way {
  turn: number
  move: CheckpointMove | undefined
  /** Master behind sentinels: no step goes to another one. */
  server: string | undefined
}

const nameOf = ({ isFirst, isLast }: Step): string => (isFirst ? (isLast ? 'only' : 'first') : isLast ? 'last' : 'next')

/** @throws Failure engine_down where other rows were put in the place of a table's */
const assertInPlace = (answer: unknown): void => {
  if (String((answer as Buffer[])[0]) === 'replaced') throw down(new Error('a table was replaced meanwhile'))
}
