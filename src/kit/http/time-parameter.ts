import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { TIME_MS_MAX, TIME_MS_MIN } from '../../kernel/schema.ts'
import { parseTime } from './parse-time.ts'

/**
 * A time in query parameters and fields of forms, RFC 3339 or milliseconds since the epoch; undefined where absent.
 * @throws Failure invalid that names `path`.
 */
export const timeParameter = (path: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const time = /^-?\d{1,15}$/.test(text) ? Number(text) : parseTime(text)
  if (!(time >= TIME_MS_MIN && time <= TIME_MS_MAX))
    throw invalid(path, 'must be a time in RFC 3339 or epoch milliseconds')
  return time
}

/** The parameters `from` and `to` of a list: `what` as in "Runs made then or later". */
export const boundsSchema = (what: string): { from: JsonSchema; to: JsonSchema } => {
  const bound = (side: string): JsonSchema => ({
    type: 'string',
    maxLength: 40,
    description: `${what} then or ${side}: RFC 3339, or milliseconds since the epoch.`,
  })
  return { from: bound('later'), to: bound('earlier') }
}

/**
 * The inclusive bounds that `from` and `to` name, or parameters of other names.
 * @throws Failure invalid for a value that is no time, or an end before its beginning.
 */
export const timeBounds = (
  query: { from?: string; to?: string },
  names: { from: string; to: string } = { from: 'from', to: 'to' },
): { from?: number; to?: number } => {
  const from = timeParameter(`/${names.from}`, query.from)
  const to = timeParameter(`/${names.to}`, query.to)
  if (from !== undefined && to !== undefined && from > to)
    throw invalid(`/${names.to}`, `must not be before ${names.from}`)
  return { from, to }
}
