import { RE2JS } from 're2js'
import { RecentMap } from '../../kernel/recent-map.ts'

const PATTERN_CHARS_MAX = 500
/** Instructions of a compiled pattern: each character of a text costs at most so many steps. */
const PROGRAM_MAX = 5_000
const KEPT_MAX = 1_000

/** Whether a part of the text matches. Takes time that is linear in the text, whatever the pattern. */
export type Pattern = (text: string) => boolean

const kept = new RecentMap<string, Pattern | string>(KEPT_MAX / 2)

/** A customer's regular expression, in the syntax of RE2; a string says why it is none. Never the engine of JavaScript, which some patterns keep busy for ever. */
export const linearPattern = (source: string): Pattern | string => {
  const known = kept.get(source)
  if (known !== undefined) return known
  const made = compiled(source)
  kept.set(source, made)
  return made
}

const compiled = (source: string): Pattern | string => {
  if (source.length > PATTERN_CHARS_MAX) return `must be a pattern of at most ${PATTERN_CHARS_MAX} characters`
  try {
    const pattern = RE2JS.compile(source)
    return pattern.programSize() > PROGRAM_MAX ? 'must be a simpler pattern' : (text) => pattern.test(text)
  } catch (error) {
    return `must be a regular expression of RE2 (${(error as Error).message.slice(0, 200)})`
  }
}
