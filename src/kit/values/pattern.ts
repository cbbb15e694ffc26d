import { RE2JS } from 're2js'
import { RecentMap } from '../../kernel/recent-map.ts'

const PATTERN_CHARS_MAX = 500
/** Instructions of a compiled pattern: each character of a text costs at most that many steps. */
const PROGRAM_MAX = 5_000
/** A little more, as one of several characters becomes one instruction: longer ones are not compiled to be counted. */
const SPELLED_OUT_MAX = 2 * PROGRAM_MAX
const KEPT_MAX = 1_000

/** Instructions times characters: each step takes up to 90 ns, and a record may have its 256 KB of texts in such fields. */
const STEPS_MAX = 1_000_000

/** Instructions of a pattern that needs no bound on its texts: such as one for e-mail addresses. */
const ORDINARY_SIZE = 500

/** Whether a part of the text matches. Takes time that is linear in the text, whatever the pattern. */
export type Pattern = (text: string) => boolean

interface Compiled {
  matches: Pattern
  /** Instructions. */
  size: number
}

const kept = new RecentMap<string, Compiled | string>(KEPT_MAX / 2)

/** A customer's regular expression (RE2); a string is its fault. JavaScript's engine may hang for ever on some. */
export const linearPattern = (source: string): Pattern | string => {
  const pattern = compiledOnce(source)
  return typeof pattern === 'string' ? pattern : pattern.matches
}

/** Maximum length of a text that is matched against a pattern, where nothing else bounds it. */
export const charsMaxOf = (source: string, charsMax: number): number => {
  const pattern = compiledOnce(source)
  const size = typeof pattern === 'string' ? 1 : Math.min(pattern.size, ORDINARY_SIZE)
  return Math.min(charsMax, Math.floor(STEPS_MAX / size))
}

/** Fault of patterns that are matched against texts of up to `charsMax` characters; undefined for none. */
export const patternsFault = (sources: readonly string[], charsMax: number): string | undefined => {
  let size = 0
  for (const source of sources) {
    const pattern = compiledOnce(source)
    if (typeof pattern === 'string') return pattern
    size += pattern.size
  }
  if (size * charsMax <= STEPS_MAX) return undefined
  return `must be simpler, or for texts of at most ${Math.floor(STEPS_MAX / size)} characters`
}

const compiledOnce = (source: string): Compiled | string => {
  const known = kept.get(source)
  if (known !== undefined) return known
  const made = compiled(source)
  kept.set(source, made)
  return made
}

const compiled = (source: string): Compiled | string => {
  if (source.length > PATTERN_CHARS_MAX) return `must be a pattern of at most ${PATTERN_CHARS_MAX} characters`
  if (spelledOut(source) > SPELLED_OUT_MAX) return 'must be a simpler pattern'
  try {
    const pattern = RE2JS.compile(source)
    const size = pattern.programSize()
    return size > PROGRAM_MAX ? 'must be a simpler pattern' : { matches: (text) => pattern.test(text), size }
  } catch (error) {
    return `must be a regular expression of RE2 (${(error as Error).message.slice(0, 200)})`
  }
}

/** Literals, classes and the beginnings of groups, and repetitions of the part before. */
const TOKENS =
  /\\Q.*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[:[^\]]*:\]|[^\]\\])*\]|\((?:\?(?:P?<\w+>|[a-zA-Z-]*:?))?|\{(\d+)(?:(,)(\d*))?\}|./gsu

/** Number of characters and classes of a pattern with its repetitions written out, about: the cost of compiling it. */
const spelledOut = (source: string): number => {
  const around: number[] = []
  let size = 0
  let last = 0
  for (const [token, least, isRange, most] of source.matchAll(TOKENS)) {
    if (least !== undefined) {
      const times = isRange === undefined ? Number(least) : most === '' ? Number(least) + 1 : Number(most)
      size += last * (times - 1)
      last *= times
    } else if (token.startsWith('(')) {
      around.push(size)
      size = 1
    } else if (token === ')') {
      last = size
      size += around.pop() ?? 0
    } else if (!/^[*+?|]$/.test(token)) {
      last = token.startsWith('\\Q') ? token.length : 1
      size += last
    }
  }
  return size
}
