import type { HistoryParameters } from '../history-store.ts'

type Value = HistoryParameters[string]

const PLACEHOLDER = /\{([A-Za-z_][A-Za-z0-9_]*):([A-Za-z][A-Za-z0-9]*(?:\([A-Za-z0-9, ']*\))?)\}/g
const INTEGER = /^U?Int(8|16|32|64)$/
const ARRAY = /^Array\(([A-Za-z0-9]+)\)$/
const ESCAPED = /[\\'\0\b\f\n\r\t]/g
const ESCAPES: { [character: string]: string } = {
  '\\': '\\\\',
  "'": "\\'",
  '\0': '\\0',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

/**
 * Replaces `{name:Type}` with values as literals. The engine in process binds parameters in state shared by all its
 * sessions, so that two queries at once could read each other's values: hence literals, made here and nowhere else.
 * @throws Error for a placeholder without a value, a value without a placeholder, or a value that its type cannot hold.
 */
export const bindParameters = (sql: string, parameters: HistoryParameters = {}): string => {
  const used = new Set<string>()
  const bound = sql.replace(PLACEHOLDER, (_whole, name: string, type: string) => {
    if (!Object.hasOwn(parameters, name)) throw new Error(`no value for the parameter ${name}`)
    used.add(name)
    return literal(parameters[name], type)
  })
  for (const name of Object.keys(parameters))
    if (!used.has(name)) throw new Error(`no placeholder for the parameter ${name}`)
  return bound
}

/** A string as a literal of ClickHouse's SQL. Only backslash and quote can end a literal; the rest is for readable logs. */
export const quoteString = (text: string): string => `'${text.replace(ESCAPED, (character) => ESCAPES[character])}'`

const literal = (value: Value, type: string): string => {
  if (Array.isArray(value)) {
    const [, element] = ARRAY.exec(type) ?? []
    if (element === undefined) throw new Error(`an array does not fit ${type}`)
    const bare = element === 'String' || INTEGER.test(element)
    const items = value.map((item: string | number) =>
      typeof item === 'number' ? number(item, element) : quoteString(item),
    )
    return bare && items.length > 0 ? `[${items.join(',')}]` : `CAST([${items.join(',')}], ${quoteString(type)})`
  }
  if (typeof value === 'number') {
    const digits = number(value, type)
    return INTEGER.test(type) ? digits : `CAST(${digits}, ${quoteString(type)})`
  }
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (typeof value !== 'string' || INTEGER.test(type)) throw new Error(`a ${typeof value} does not fit ${type}`)
  return type === 'String' ? quoteString(value) : `CAST(${quoteString(value)}, ${quoteString(type)})`
}

const number = (value: number, type: string): string => {
  if (type === 'String' || !Number.isFinite(value) || (INTEGER.test(type) && !Number.isSafeInteger(value)))
    throw new Error(`${value} does not fit ${type}`)
  return value < 0 ? `(${value})` : String(value)
}
