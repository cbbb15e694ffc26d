import type { HistoryParameters } from '../../../src/engines/history-store.ts'

/** `http_max_field_value_size` of a server that was left as it is. */
const FIELD_BYTES_MAX = 131_072
const TOO_LONG = 'Poco::Exception. Code: 1000, e.code() = 0, HTML Form Exception: Field value too long'

/** The fields of a `multipart/form-data` body, or none for another type. */
export const formOf = (contentType: string | undefined, body: Buffer): Map<string, string> => {
  const fields = new Map<string, string>()
  const [, boundary] = /^multipart\/form-data; *boundary=(\S+)$/.exec(contentType ?? '') ?? []
  if (boundary === undefined) return fields
  for (const part of body.toString().split(`--${boundary}`)) {
    const found = /^\r\nContent-Disposition: form-data; name="([^"]+)"\r\n\r\n([\s\S]*)\r\n$/.exec(part)
    if (found === null) continue
    if (found[2].length > FIELD_BYTES_MAX) throw new Error(TOO_LONG)
    fields.set(found[1], found[2])
  }
  return fields
}

const PLACEHOLDER = /\{([A-Za-z_][A-Za-z0-9_]*):([A-Za-z][A-Za-z0-9]*(?:\([A-Za-z0-9, ']*\))?)\}/g
const UNESCAPED: { [character: string]: string } = { t: '\t', n: '\n', r: '\r', '0': '\0', b: '\b', f: '\f' }

/** The values of a query's placeholders as a server reads them: tab-separated text, literals for arrays. */
export const valuesOf = (query: string, given: ReadonlyMap<string, string>): HistoryParameters => {
  const values: HistoryParameters = {}
  for (const [, name, type] of query.matchAll(PLACEHOLDER)) {
    const text = given.get(`param_${name}`)
    if (text === undefined)
      throw new Error(`Code: 456. DB::Exception: Substitution \`${name}\` is not set. (UNKNOWN_QUERY_PARAMETER)`)
    values[name] = type.startsWith('Array(') ? itemsOf(text) : scalarOf(unescaped(text), type)
  }
  return values
}

const scalarOf = (text: string, type: string): string | number | boolean => {
  if (type === 'Bool') return text === '1' || text === 'true'
  if (!/^(U?Int|Float)\d+$/.test(type)) return text
  if (text.trim() === '' || Number.isNaN(Number(text)))
    throw new Error(`Code: 457. DB::Exception: Value ${text} cannot be parsed as ${type}. (BAD_QUERY_PARAMETER)`)
  return Number(text)
}

const itemsOf = (literal: string): string[] | number[] => {
  const items = [...literal.matchAll(/'((?:[^'\\]|\\[\s\S])*)'|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g)]
  if (items.every(([, quoted]) => quoted === undefined)) return items.map(([number]) => Number(number))
  return items.map(([, quoted = '']) => unescaped(quoted))
}

const unescaped = (text: string): string =>
  text.replace(/\\([\s\S])/g, (_escape, character: string) => UNESCAPED[character] ?? character)
