import type { CheckpointMove, StoredRow, TableStore } from '../../src/engines/table-store.ts'
import { type Row, type RowChange, rowChangesOf } from '../../src/kernel/table.ts'
import type { Commit, MemoryRows } from './memory-rows.ts'
import { down, type Wire } from './wire.ts'

export interface MemoryTables extends TableStore {
  /** Tells those who listen that something may be lost. */
  tellLoss(): void
}

/** The port, as one process has it. A commit of several places is a call for each of them, the checkpoint's last. */
export const openMemoryTables = (server: MemoryRows, wire: Wire): MemoryTables => {
  let isClosed = false
  const listeners = new Set<() => void>()
  let endHearing = (): void => undefined
  const call = <Answer>(run: () => Answer, consumer?: string): Promise<Answer> =>
    isClosed ? Promise.reject(down()) : wire.call(run, consumer)
  const write = <Answer>(run: () => Answer, consumer = ''): Promise<Answer> =>
    isClosed ? Promise.reject(down()) : wire.write(run, consumer)
  const commits = new Commits(server, write)
  const scanned = async function* <R extends Row>(run: () => StoredRow[]) {
    for (const row of await call(run)) yield row as StoredRow<R>
  }
  return {
    declare: (table) => call(() => server.declare(table)),
    get: <R extends Row>(table: string, scope: string, id: string) =>
      call(() => server.get(table, scope, id) as R | undefined),
    getMany: async <R extends Row>(table: string, scope: string, ids: readonly string[]) =>
      ids.length === 0 ? [] : call(() => ids.map((id) => server.get(table, scope, id) as R | undefined)),
    find: (table, scope, question) => call(() => server.find(table, scope, question)),
    countBy: (...asked) => call(() => server.countBy(...asked)),
    scan: (table, scope) => scanned(() => server.scan(table, scope)),
    scanAll: (table) => scanned(() => server.scanAll(table)),
    commit: (changes, move, numbers) =>
      commits.commit(numbers === undefined ? changes : [...changes, ...rowChangesOf(numbers)], move),
    take: (consumer) => write(() => server.take(consumer), consumer),
    putIfAbsent: <R extends Row>(change: RowChange & { row: R }) =>
      call(() => server.putIfAbsent(change) as R | undefined),
    increment: (...counter) => call(() => server.increment(...counter)),
    checkpoint: (consumer) => call(() => server.checkpoint(consumer), consumer),
    promote: (tables, consumer) => call(() => server.promote(tables, consumer)),
    reset: (tables, consumer) => call(() => server.reset(tables, consumer)),
    isLost: () => false,
    onLoss: (listener) => void listeners.add(listener),
    tellLoss: () => {
      for (const listener of listeners) wire.tell(listener)
    },
    tell: (text) => call(() => server.tell(text)),
    hear: (listener) => {
      // What is told may be lost on its way.
      endHearing = server.hear((text) => void call(() => text).then(listener, () => undefined))
    },
    ping: () => call(() => undefined),
    close: async () => {
      isClosed = true
      endHearing()
    },
  }
}

/** Commits of one process: those of one place follow each other. */
class Commits {
  private readonly server: MemoryRows
  private readonly write: <Answer>(run: () => Answer, consumer?: string) => Promise<Answer>
  /** The last write of each place. */
  private readonly tails = new Map<string, Promise<unknown>>()
  private turn = 0

  constructor(server: MemoryRows, write: <Answer>(run: () => Answer, consumer?: string) => Promise<Answer>) {
    this.server = server
    this.write = write
  }

  async commit(changes: readonly RowChange[], move?: CheckpointMove): Promise<void> {
    const places = new Map<string, RowChange[]>()
    for (const change of changes) {
      const place = this.placeOf(change, move)
      const rows = places.get(place)
      if (rows === undefined) places.set(place, [change])
      else rows.push(change)
    }
    const own = move && placeOfConsumer(move.consumer)
    const keys = own === undefined || places.has(own) ? [...places.keys()] : [...places.keys(), own]
    const before = Promise.all(keys.map((key) => this.tails.get(key)))
    const stored = before.then(() => this.store(places, own, move))
    const tail = stored.catch(() => undefined)
    for (const key of keys) this.tails.set(key, tail)
    await stored
  }

  private async store(places: ReadonlyMap<string, RowChange[]>, own?: string, move?: CheckpointMove): Promise<void> {
    const { server } = this
    const commit = move && { ...move, turn: ++this.turn }
    const write = <Answer>(run: () => Answer): Promise<Answer> => this.write(run, move?.consumer)
    const others = [...places].filter(([place]) => place !== own)
    let losses: number | undefined
    const begin = (begun: CheckpointMove): boolean => {
      losses = server.losses
      return server.isDone(begun)
    }
    if (commit !== undefined && others.length > 0 && (await write(() => begin(commit)))) return
    // It goes on where it began: a server that lost what it was to follow, or some of its rows, has another name.
    const onSameServer = (run: () => void) => (): void => {
      if (losses !== undefined && losses !== server.losses) throw down()
      run()
    }
    const all = await Promise.allSettled(
      others.map(([place, rows]) => write(onSameServer(() => server.storePlace(place, rows, commit)))),
    )
    for (const one of all) if (one.status === 'rejected') throw one.reason
    const end = (begun: Commit): void => onSameServer(() => server.storeMove(places.get(own as string) ?? [], begun))()
    if (commit !== undefined) await write(() => end(commit))
    else if (others.length === 0) await write(() => undefined)
  }

  private placeOf({ table, scope, id }: RowChange, move: CheckpointMove | undefined): string {
    const { lives = 'organization' } = this.server.declarationOf(table)
    if (lives === 'row') return JSON.stringify([table, scope, id])
    if (lives === 'organization') return JSON.stringify(['scope', scope])
    if (move !== undefined && scope !== move.consumer) throw new Error(`rows of ${table} are not ${move.consumer}'s`)
    return placeOfConsumer(scope)
  }
}

const placeOfConsumer = (consumer: string): string => JSON.stringify(['consumer', consumer])
