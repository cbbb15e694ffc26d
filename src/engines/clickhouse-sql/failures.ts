import { Failure } from '../../kernel/errors.ts'

/** TIMEOUT_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, MEMORY_LIMIT_EXCEEDED, TOO_MANY_PARTS, QUERY_WAS_CANCELLED */
const OVERLOADED = new Set([159, 202, 241, 252, 394])
/**
 * Cannot write, read, open or close a file; not enough space; corrupted data; network and socket errors; no replica,
 * shard or keeper reachable; a table that is read-only; wrong credentials.
 */
const DOWN = new Set([
  24, 27, 33, 74, 75, 76, 77, 198, 209, 210, 225, 226, 228, 236, 242, 243, 246, 279, 286, 319, 499, 516, 999,
])

/** The engine cannot work now; a write whose answer was lost may have happened. */
export const historyDown = (cause?: unknown): Failure =>
  new Failure('engine_down', {
    message: 'The history does not answer; try again later.',
    retryAfterSeconds: 1,
    cause,
  })

/** The engine refused or ended the query at its limits. */
export const historyOverloaded = (cause?: unknown): Failure =>
  new Failure('overloaded', {
    message: 'The history could not answer this within its limits; narrow the question or try again later.',
    retryAfterSeconds: 5,
    cause,
  })

/** The failure of ClickHouse's exception number for a client; an unknown one is a fault of the program. */
export const failureOfCode = (code: number | undefined, cause: unknown): Failure => {
  if (code !== undefined && DOWN.has(code)) return historyDown(cause)
  if (code !== undefined && OVERLOADED.has(code)) return historyOverloaded(cause)
  return new Failure('internal', { cause })
}
