import { randomBytes } from 'node:crypto'
import { type Find, rangesOf } from '../table-store.ts'

/*
 * Changes in a table's place, so that remembered pages know whether they still hold. Each change has a unique token.
 * Redis notes it, with the change, for everything that it touches: rows, the set of them (`ids`), each index. The same
 * token thus stands there only while nothing else has touched it, whatever became of the server meanwhile: a counter
 * might return to an earlier number, after a failover that lost some changes.
 */

const WRITER = randomBytes(9).toString('base64url')
let changes = 0

export const newToken = (): string => `${WRITER}${(changes++).toString(36)}`

/** Everything that a page depends on, but its rows. */
export const dependencies = ({ where = {}, every = {}, range, ranges, text, words, sort }: Find): string[] => [
  'ids',
  ...[...Object.keys(where), ...Object.keys(every)].map((field) => `e:${field}`),
  ...rangesOf({ range, ranges }).map(({ field }) => `r:${field}`),
  ...(sort === undefined ? [] : [`r:${sort.field}`]),
  ...(text === undefined && words === undefined ? [] : ['w']),
]

/** The last changes of some names in a text of Redis, for comparison. */
export const changesOf = (text: string, names: readonly string[]): string => {
  const lines = text.split('\n')
  const tokens = new Map<string, string>()
  for (let i = 0; i + 1 < lines.length; i += 2) tokens.set(lines[i], lines[i + 1])
  return names.map((name) => tokens.get(name) ?? '').join()
}
