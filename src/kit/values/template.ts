import mustache from 'mustache'
import { valueAt } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

/*
 * Texts with values in them, in the syntax of Mustache (mustache.github.io, mustache(5)): variables, sections, inverted
 * sections, comments and other delimiters. The package parses; values are looked up and written here, so that only own
 * members of the data are reached, no function is called, and every value is escaped for the kind of text, those in
 * triple braces too. There are no partials.
 */

/** A tag or a piece of text: type, name or text, start, end, and the content of a section. */
type Token = [type: string, value: string, start: number, end: number, inner?: Token[], ...more: unknown[]]

export interface RenderOptions {
  /** Makes a value safe for the kind of text, such as HTML; a plain text needs nothing. */
  escape: (value: string) => string
  /** Characters of the result; the rest is cut off, with an ellipsis. */
  charsMax: number
}

const TEMPLATE_CHARS_MAX = 10_000
const DEPTH_MAX = 10
/** The package searches the end of a tag in time that is quadratic in a run of blanks. */
const BLANKS_MAX = 200
const TOO_BLANK = new RegExp(`\\s{${BLANKS_MAX + 1}}`)
/** Tags and pieces of text that are written for one result: nested sections over long lists end here. */
const STEPS_MAX = 10_000
const KEPT_MAX = 500

/**
 * The fault of a template; undefined for none.
 * @param pathFault the reason why a path names nothing in the future data; undefined when it may name something
 */
export const templateFault = (
  template: string,
  pathFault: PathFault,
  charsMax = TEMPLATE_CHARS_MAX,
): string | undefined => {
  if (template.length > charsMax) return `must be at most ${charsMax} characters`
  if (TOO_BLANK.test(template)) return `must have at most ${BLANKS_MAX} blanks in a row`
  const tokens = parsed(template)
  return typeof tokens === 'string' ? tokens : tokensFault(tokens, undefined, 0, pathFault)
}

/** The text with the values of the data; a path that the data lacks is empty. @throws Error for a template that has a fault */
export const renderTemplate = (template: string, data: object, options: RenderOptions): string => {
  const tokens = parsed(template)
  if (typeof tokens === 'string') throw new Error(`the template ${tokens}`)
  const writing = new Writing(options)
  writing.write(tokens, [data])
  return writing.text()
}

const kept = new RecentMap<string, Token[] | string>(KEPT_MAX / 2)
const parser = new mustache.Writer()
// Its own cache never forgets.
;(parser as unknown as { templateCache: undefined }).templateCache = undefined

/** The tokens, or the fault of the syntax. */
const parsed = (template: string): Token[] | string => {
  const known = kept.get(template)
  if (known !== undefined) return known
  const tokens = parse(template)
  kept.set(template, tokens)
  return tokens
}

const parse = (template: string): Token[] | string => {
  try {
    return parser.parse(template) as unknown as Token[]
  } catch (error) {
    return `must be a Mustache template (${(error as Error).message.slice(0, 200)})`
  }
}

/** Paths of the data whose members the names in a section may be. */
interface Bases {
  /** Possible paths of the section itself. */
  own: readonly string[]
  /** Together with those of the sections around it. */
  all: readonly string[]
}

type PathFault = (path: string) => string | undefined

const tokensFault = (
  tokens: readonly Token[],
  bases: Bases | undefined,
  depth: number,
  pathFault: PathFault,
): string | undefined => {
  if (depth > DEPTH_MAX) return `must nest at most ${DEPTH_MAX} sections`
  for (const [type, path, , , inner] of tokens) {
    if (type === '>') return 'must not have partials ({{> …}})'
    if (type === 'text' || type === '!' || type === '=') continue
    const fault = nameFault(path, bases, pathFault)
    if (fault !== undefined) return fault
    if (type !== '#' && type !== '^') continue
    const inside = type === '#' ? basesIn(path, bases, pathFault) : bases
    const within = tokensFault(inner ?? [], inside, depth + 1, pathFault)
    if (within !== undefined) return within
  }
  return undefined
}

/** In a section a name may be a member of its subject, or of an item of it. */
const nameFault = (path: string, bases: Bases | undefined, pathFault: PathFault): string | undefined => {
  if (path === '.') return bases !== undefined ? undefined : '{{.}} must stand in a section'
  if (path === '') return 'must not have an empty tag'
  if (path.split('.').includes('__proto__')) return 'must not name __proto__'
  const fault = pathFault(path)
  if (fault === undefined) return undefined
  const isMember = bases?.all.some((base) => pathFault(`${base}.${path}`) === undefined)
  return isMember === true ? undefined : `{{${path}}} ${fault}`
}

/** Paths for names in a section of this name, which may be a member of the outer one. At most as many as its names. */
const basesIn = (path: string, around: Bases | undefined, pathFault: PathFault): Bases => {
  const outer = around?.own ?? []
  const named = path === '.' ? outer : [path, ...outer.map((base) => `${base}.${path}`)]
  const own = named
    .flatMap((base) => [base, `${base}.0`])
    .filter((base) => pathFault(base) === undefined)
    .slice(0, BASES_MAX)
  return { own, all: [...new Set([...(around?.all ?? []), ...own])] }
}

const BASES_MAX = 16

/** One result while it is written. */
class Writing {
  private readonly options: RenderOptions
  private readonly parts: string[] = []
  private chars = 0
  private steps = 0

  constructor(options: RenderOptions) {
    this.options = options
  }

  text(): string {
    const { charsMax } = this.options
    const text = this.parts.join('')
    return this.isFull() ? `${text.slice(0, charsMax - 1)}…` : text
  }

  /** @param contexts objects in which names are looked up, the innermost last */
  write(tokens: readonly Token[], contexts: readonly unknown[]): void {
    for (const [type, value, , , inner = []] of tokens) {
      if (this.isFull()) return
      this.steps++
      if (type === 'text') this.push(value)
      else if (type === 'name' || type === '&') this.push(this.options.escape(textOf(lookUp(contexts, value))))
      else if (type === '#') this.section(inner, lookUp(contexts, value), contexts)
      else if (type === '^' && isEmpty(lookUp(contexts, value))) this.write(inner, contexts)
    }
  }

  private section(inner: readonly Token[], value: unknown, contexts: readonly unknown[]): void {
    if (isEmpty(value)) return
    for (const item of Array.isArray(value) ? value : [value]) {
      if (this.isFull()) return
      this.steps++
      this.write(inner, [...contexts, item])
    }
  }

  private push(text: string): void {
    this.parts.push(text)
    this.chars += text.length
  }

  private isFull(): boolean {
    return this.chars > this.options.charsMax || this.steps > STEPS_MAX
  }
}

const lookUp = (contexts: readonly unknown[], path: string): unknown => {
  if (path === '.') return contexts[contexts.length - 1]
  const steps = path.split('.')
  for (let i = contexts.length - 1; i >= 0; i--) {
    const found = valueAt(contexts[i], steps)
    if (found !== undefined) return found
  }
  return undefined
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === '' ||
  (Array.isArray(value) && value.length === 0)

/** Lists of plain values with commas, everything else with members as JSON. */
const textOf = (value: unknown): string => {
  if (value === undefined || value === null || typeof value === 'function') return ''
  if (typeof value !== 'object') return String(value)
  const isPlain = Array.isArray(value) && value.every((item) => typeof item !== 'object')
  return isPlain ? value.join(', ') : JSON.stringify(value)
}
