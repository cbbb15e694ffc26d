import { nextSlice } from '../../kernel/breath.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { isObject, type JsonObject, type JsonSchema } from '../../kernel/json.ts'
import { normalized } from '../../kernel/text.ts'
import { idSource } from '../commands/ids.ts'
import { severalAtOnce } from '../commands/several-at-once.ts'
import { allWrote } from '../commands/wrote.ts'
import { envelope, UUID } from '../http/page-members.ts'
import type { Answer, Wrote } from '../http/route.ts'
import { originOf, type WriteOrigin, type Written } from './writes.ts'

const BULK_MAX = 500
export const BULK_BYTES_MAX = 4 * 1024 * 1024
/**
 * Items written at a time: they share the appends of the log, and their rows the commits of the tables. With 256 an
 * import blocked the event loop for over 10 ms twice as often; with 64 it took a quarter more processor time.
 */
const AT_ONCE = 128

/** Refused item of a bulk: its place in the request, and the reason. */
export interface Rejected {
  index: number
  code: string
  message: string
}

/** The schema of a list of items; the handler's items have none, since each is checked by itself. */
export const bulkItems = (items: JsonSchema = {}): JsonSchema => ({
  type: 'array',
  minItems: 1,
  maxItems: BULK_MAX,
  items,
})

const REJECTED: JsonSchema = {
  type: 'array',
  items: {
    type: 'object',
    properties: { index: { type: 'integer' }, code: { type: 'string' }, message: { type: 'string' } },
    required: ['index', 'code', 'message'],
  },
}

export const BULK_IDS: JsonSchema = { type: 'array', items: UUID }

/** The answer to a bulk: its members beside `rejected`, of which `optional` ones may be absent. */
export const bulkAnswer = (
  description: string,
  members: { [name: string]: JsonSchema },
  example: object,
  optional: readonly string[] = [],
): Answer => ({
  description,
  schema: envelope({
    data: {
      type: 'object',
      properties: { ...members, rejected: REJECTED },
      required: [...Object.keys(members).filter((name) => !optional.includes(name)), 'rejected'],
    },
  }),
  example: { status: true, data: { ...example, rejected: [] } },
})

interface BulkDone<Done> {
  /** Written items, in the order of the request. */
  done: readonly Done[]
  rejected: readonly Rejected[]
  wrote: Wrote | undefined
}

/**
 * Writes each item by itself, several at a time: a refused one is listed and leaves the others. Each has ids of its own
 * where they are derived from a seed; otherwise a repeated request, which finds some items made, would draw other ids
 * for the rest. Items that share a key of `keysOf` are written in the order of the request.
 * @throws Failure of which no item is the cause, such as engine_down
 */
export const writeEach = async <Done extends Written>(
  request: Parameters<typeof originOf>[0],
  items: readonly unknown[],
  write: (item: unknown, origin: WriteOrigin) => Promise<Done>,
  keysOf: (item: JsonObject) => readonly unknown[] = ({ _id, externalId }) => [_id, externalId],
): Promise<BulkDone<Done>> => {
  const shared = { ...originOf(request), isOneOfMany: true }
  const origins = items.map((): WriteOrigin => {
    if (request.ids.isRandom) return shared
    return { ...shared, ids: idSource(request.now, Buffer.from(request.ids.next()), request.ids.isRepeat) }
  })
  const outcomes: (Done | Rejected)[] = new Array(items.length)
  const turns = new Map<string, Promise<void>>()
  const inTurn = (index: number): Promise<void> => {
    const item = items[index]
    const keys = isObject(item) ? keysOf(item).flatMap((key, i) => (key == null ? [] : [turnOf(i, key)])) : []
    const before = keys.map((key) => turns.get(key))
    const turn = async (): Promise<void> => {
      await Promise.all(before)
      await nextSlice()
      outcomes[index] = await outcomeOf(index, () => write(item, origins[index]))
    }
    const done = turn()
    for (const key of keys) turns.set(key, done)
    return done
  }
  await severalAtOnce(items.keys(), AT_ONCE, inTurn)
  const done = outcomes.filter((one): one is Done => !('index' in one))
  const rejected = outcomes.filter((one): one is Rejected => 'index' in one)
  return { done, rejected, wrote: allWrote(...done.map(({ wrote }) => wrote)) }
}

const turnOf = (i: number, key: unknown): string => `${i} ${normalized(String(key)).trim().toLowerCase()}`

const outcomeOf = async <Done>(index: number, write: () => Promise<Done>): Promise<Done | Rejected> => {
  try {
    return await write()
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    return { index, code: error.code, message: error.message }
  }
}

/** Refuses names that change the prototype of all objects, as other bodies do anyway. @throws Failure invalid */
export const assertPlainNames = (item: unknown): void => {
  const waiting = [item]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const [name, inner] of Object.entries(value)) {
      const isPrototype = name === 'constructor' && isObject(inner) && Object.hasOwn(inner, 'prototype')
      if (name === '__proto__' || isPrototype) throw invalid(`/${name}`, 'is not a known field')
      waiting.push(inner)
    }
  }
}
