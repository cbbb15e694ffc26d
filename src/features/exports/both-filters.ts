import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import { parseTime } from '../../kit/http/parse-time.ts'

/** Parameters that are the lower or the upper bound of a range: `from`, `finishedTo`; `values.price.from`. */
const BOUND = /^(from|to)$|[a-z](From|To)$/
const BOUND_OF_FIELD = /\..+\.(from|to)$/

/**
 * Combines a filter with the config's: rows pass both. Of several values those allowed by both are left, of two bounds
 * the narrower one. `parameters` are those of the list. @throws Failure invalid where nothing is left
 */
export const bothFilters = (
  kept: JsonObject,
  sent: JsonObject,
  parameters: { readonly [name: string]: JsonSchema },
): JsonObject => {
  const both = { ...kept, ...sent }
  for (const [name, value] of Object.entries(sent)) {
    if (!Object.hasOwn(kept, name)) continue
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const isBound = (parameter === undefined ? BOUND_OF_FIELD : BOUND).test(name)
    both[name] = isBound
      ? narrower(kept[name], value, /from$/i.test(name))
      : commonValues(name, kept[name], value, parameter?.['x-commas'] === true)
  }
  return both
}

const commonValues = (name: string, kept: Json, sent: Json, takesCommas: boolean): Json => {
  const split = (value: Json): Json[] =>
    takesCommas ? [value].flat().flatMap((one) => String(one).split(',')) : [value].flat()
  // Values with commas are ids and states, which are compared without case.
  const keyOf = (one: Json): string => (takesCommas ? String(one).toLowerCase() : String(one))
  const allowed = new Set(split(kept).map(keyOf))
  const left = split(sent).filter((one) => allowed.has(keyOf(one)))
  if (left.length === 0) throw invalid(`/filter/${name}`, 'asks for what the config leaves out')
  return Array.isArray(sent) || left.length > 1 ? left : left[0]
}

/** Bounds of different kinds are for the list to refuse. */
const narrower = (kept: Json, sent: Json, isLower: boolean): Json => {
  const [one, other] = [placeOf(kept), placeOf(sent)]
  if (typeof one !== typeof other) return sent
  const isKeptNarrower = isLower ? one > other : one < other
  return isKeptNarrower ? kept : sent
}

/** Numbers and times are compared by their value, days and times of day as texts. */
const placeOf = (value: Json): number | string => {
  const text = String(value)
  const number = text.trim() === '' ? Number.NaN : Number(text)
  const place = Number.isNaN(number) ? parseTime(text) : number
  return Number.isNaN(place) ? text : place
}
