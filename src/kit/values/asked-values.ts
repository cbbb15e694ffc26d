import { invalid } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import { ABSENT_VALUE } from '../http/list-query.ts'
import { plainNumber } from '../http/plain-number.ts'
import { keptValue, type ValueRule, valueFault } from './value-type.ts'

/** Values of which a row has any; `null` means rows without one. */
export interface AskedValues {
  values: Json[]
  isAbsent: boolean
  /** Values that are no option, or not any more. */
  strange: Json[]
}

/**
 * The values that the texts of a filter's parameter mean. Ids and options may stand in one text with commas, unless an
 * option has one. A former option is accepted while a record has it: see `assertKnown`.
 * @throws Failure invalid
 */
export const askedValues = (rule: ValueRule, texts: readonly string[], path: string): AskedValues => {
  const parts = texts.flatMap((text) => (isSplit(rule, text) ? text.split(',') : [text]))
  const asked = parts.filter((part) => part !== ABSENT_VALUE)
  const values = asked.map((part) => askedValue(rule, part, path))
  const { options } = rule
  const strange = options === undefined ? [] : values.filter((value) => !options.includes(String(value)))
  return { values, isAbsent: asked.length < parts.length, strange }
}

/**
 * A value that is no option must be one that some record still has: else a typing error would be answered with an empty
 * list. @throws Failure invalid that names the options
 */
export const assertKnown = async (
  { options = [] }: ValueRule,
  strange: readonly Json[],
  path: string,
  isHeld: (value: Json) => Promise<boolean>,
): Promise<void> => {
  for (const value of strange) if (!(await isHeld(value))) throw invalid(path, oneOf(options))
}

const OPTIONS_NAMED = 50

const oneOf = (options: readonly string[]): string =>
  `must be one of ${options.slice(0, OPTIONS_NAMED).join(', ')}${options.length > OPTIONS_NAMED ? ', …' : ''}`

const isSplit = ({ type, options = [] }: ValueRule, text: string): boolean =>
  type === 'reference' || (isChoice(type) && !options.includes(text) && !options.some((one) => one.includes(',')))

const isChoice = (type: ValueRule['type']): boolean => type === 'option' || type === 'options'

/** The value that a text means. @throws Failure invalid */
export const askedValue = ({ type, options }: ValueRule, text: string, path: string): Json => {
  const value = type === 'number' ? numberOf(text) : type === 'boolean' ? booleanOf(text) : timeOr(type, text)
  // Values that the other rules forbid may exist from before.
  const bare = { type: isChoice(type) ? ('text' as const) : type }
  const fault = value === '' ? 'must not be empty' : valueFault(bare, value)
  if (fault !== undefined) throw invalid(path, fault)
  if (options?.includes(text) === false && text.includes(',')) throw invalid(path, oneOf(options))
  return keptValue(bare, value)
}

const numberOf = (text: string): Json => {
  const number = plainNumber(text)
  return Number.isNaN(number) ? text : number
}

const booleanOf = (text: string): Json => (text === 'true' ? true : text === 'false' ? false : text)

const timeOr = (type: ValueRule['type'], text: string): Json =>
  type === 'datetime' && /^-?\d{1,15}$/.test(text) ? Number(text) : text
