import { Failure } from '../../kernel/errors.ts'
import type { RedisConnection } from './connection.ts'
import { answeredWhenFree } from './busy.ts'
import { ENDED, type KnownTable, placeKeys, TableEnded, tableKeys } from './places.ts'

export const READ_ROWS = 200
/** Times that an answer of several calls is restarted because a commit came between them. */
export const WHOLE_TRIES = 20
/** Simultaneous calls for rows of the same place; later callers share the next one. */
const CALLS_AT_ONCE = 2
/** Ids that may wait for a call, of one place. */
const WAITING_MAX = 50_000

type Rows = readonly (Buffer | null)[]

interface Question {
  ids: readonly string[]
  resolve(rows: Rows): void
  reject(error: unknown): void
}

interface Queue {
  waiting: Question[]
  waitingIds: number
  calls: number
}

/**
 * Reads rows by id. Simultaneous requests of one table and place share one call: a call costs as much as 30 rows, on
 * both sides.
 */
export class Reads {
  private readonly connection: RedisConnection
  private readonly queues = new Map<string, Queue>()

  constructor(connection: RedisConnection) {
    this.connection = connection
  }

  /** At most READ_ROWS rows, seen at once; null for missing ones. @throws Failure engine_down, overloaded */
  rows(table: KnownTable, place: string, ids: readonly string[]): Promise<Rows> {
    // A single row is whole also while a commit of several steps is under way.
    const isForced = ids.length === 1
    const name = `${place}:${table.generation}:${isForced ? '1' : '0'}`
    const queue = this.queues.get(name) ?? { waiting: [], waitingIds: 0, calls: 0 }
    if (queue.waitingIds >= WAITING_MAX)
      throw new Failure('overloaded', { message: 'Too many questions wait for the tables.', retryAfterSeconds: 1 })
    this.queues.set(name, queue)
    return new Promise((resolve, reject) => {
      queue.waitingIds += ids.length
      const isFirst = queue.waiting.push({ ids, resolve, reject }) === 1
      if (isFirst && queue.calls < CALLS_AT_ONCE)
        queueMicrotask(() =>
          this.send(name, queue, async (asked) => {
            const { rows } = await readRows(this.connection, table, place, asked, isForced)
            return rows
          }),
        )
    })
  }

  private send(name: string, queue: Queue, call: (ids: readonly string[]) => Promise<Rows>): void {
    while (queue.waiting.length > 0 && queue.calls < CALLS_AT_ONCE) {
      const questions = taken(queue)
      queue.calls++
      void this.answer(questions, queue, call).finally(() => {
        queue.calls--
        if (queue.waiting.length > 0) this.send(name, queue, call)
        else if (queue.calls === 0) this.queues.delete(name)
      })
    }
  }

  private async answer(
    questions: readonly Question[],
    queue: Queue,
    call: (ids: readonly string[]) => Promise<Rows>,
  ): Promise<void> {
    try {
      const rows = await call(questions.length === 1 ? questions[0].ids : questions.flatMap(({ ids }) => ids))
      let at = 0
      for (const { ids, resolve } of questions) resolve(rows.slice(at, (at += ids.length)))
    } catch (error) {
      // All have waited as long for the same server; else each would wait for one deadline after the other.
      for (const { reject } of [...questions, ...queue.waiting.splice(0)]) reject(error)
      queue.waitingIds = 0
    }
  }
}

/**
 * At most READ_ROWS rows, and the last change of the table that they have seen. `isForced`: also during a commit.
 * @throws TableEnded
 */
export const readRows = async (
  connection: RedisConnection,
  table: KnownTable,
  place: string,
  ids: readonly string[],
  isForced = false,
): Promise<{ rows: Rows; change: string }> => {
  const keys = [...placeKeys(place), ...tableKeys(place, table).slice(0, 5)]
  const [rows, change] = await answeredWhenFree((how) =>
    connection.fcall('rows', keys, [table.generation, isForced ? '1' : how, ...ids]),
  )
  if (String(change) === ENDED) throw new TableEnded()
  return { rows: rows as Rows, change: String(change) }
}

/** Any number of rows, seen at once: restarted where a change came between its calls. @throws TableEnded */
export const readMany = async (
  connection: RedisConnection,
  table: KnownTable,
  place: string,
  ids: readonly string[],
): Promise<Rows> => {
  for (let tries = 0; ; tries++) {
    const seen = new Set<string>()
    const rows: (Buffer | null)[] = []
    for (let at = 0; at < ids.length && (seen.size <= 1 || tries >= WHOLE_TRIES); at += READ_ROWS) {
      const part = await readRows(connection, table, place, ids.slice(at, at + READ_ROWS))
      seen.add(part.change)
      rows.push(...part.rows)
    }
    if (seen.size <= 1 || tries >= WHOLE_TRIES) return rows
  }
}

/** The questions of the next call. */
const taken = (queue: Queue): Question[] => {
  let count = 0
  let ids = 0
  for (const question of queue.waiting) {
    if (count > 0 && ids + question.ids.length > READ_ROWS) break
    ids += question.ids.length
    count++
  }
  queue.waitingIds -= ids
  return queue.waiting.splice(0, count)
}
