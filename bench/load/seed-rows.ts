import { join } from 'node:path'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { decodeJson, encodeJson, type NewEvent } from '../../src/kernel/event.ts'
import type { JsonObject } from '../../src/kernel/json.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import type { ResourceData } from '../../src/kit/commands/declared-event.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'

/** One resource made by a service, and the values in which the others differ from it. */
export interface Pattern {
  /** Stream of the resource: `task-<id>`. */
  stream: string
  rows: number
  /** Values of the n-th that differ from the pattern's. */
  values(n: number): JsonObject
}

const AT_ONCE = 2_000

/** Appends the creation of many resources to the log of a service that is stopped. Answers their ids, in order. */
export const seedRows = async (data: string, { stream, rows, values }: Pattern): Promise<string[]> => {
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  const [pattern] = await log.read(stream, 0, 1)
  const first = decodeJson<ResourceData>(pattern.data)
  const noun = stream.slice(0, stream.indexOf('-'))
  const ids = Array.from({ length: rows }, (_, n) => idFrom('bench', noun, n))
  const eventOf = (n: number): NewEvent => {
    const own = { ...first, values: { ...first.values, ...values(n) } }
    return { ...pattern, id: idFrom('bench', noun, n, 'created'), data: encodeJson(own) }
  }
  for (let from = 0; from < rows; from += AT_ONCE)
    await Promise.all(
      ids.slice(from, from + AT_ONCE).map((id, i) => log.append(`${noun}-${id}`, [eventOf(from + i)], 'none')),
    )
  await log.close()
  return ids
}
