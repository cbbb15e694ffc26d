import { invalid } from '../kernel/errors.ts'
import { parseTime } from './parse-time.ts'

/**
 * A time as query parameters name it, RFC 3339 or milliseconds since the epoch; undefined where there is none.
 * @throws Failure invalid that names `path`.
 */
export const timeParameter = (path: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const time = /^-?\d{1,15}$/.test(text) ? Number(text) : parseTime(text)
  if (Number.isNaN(time)) throw invalid(path, 'must be a time in RFC 3339 or epoch milliseconds')
  return time
}
