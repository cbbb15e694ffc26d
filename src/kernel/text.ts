import { hasInvisible } from './invisible.ts'

/**
 * Content that a text may have. `name`: one line that is not blank; `newName`: the same without invisible characters,
 * so that no two names look alike; `line`: one line, which may be blank; `lines`: line breaks and tabs too; `key`: as
 * `name`, but an opaque name from elsewhere, kept exactly as it was sent.
 */
export type TextKind = 'name' | 'newName' | 'line' | 'lines' | 'key'

/** Cc: control characters, the separators of lines and paragraphs included. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u
/** The same but for tab, line feed and carriage return. */
const CONTROL_IN_LINES = /[^\P{Cc}\t\n\r]/u
/** Embeddings, overrides and isolates: they make a name show another text than it holds. */
const BIDIRECTIONAL = /[\u202a-\u202e\u2066-\u2069]/u
/** Half of a surrogate pair: no character, and not kept by UTF-8. */
const HALF = /\p{Cs}/u
/** Something visible: no space, no invisible format character, no filler. */
const VISIBLE = /[^\p{Z}\p{Cc}\p{Cf}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]/u

/** More marks in a row than any language writes (Stream-Safe Text Format, UAX #15), with those that NFKD makes of kana. */
const MANY_MARKS = /[\p{M}\uff9e\uff9f]{31}/u
const MARKS = /[\p{M}\uff9e\uff9f]{30}(?=[\p{M}\uff9e\uff9f])/gu
/** The combining grapheme joiner: marks are not put in order across it. */
const JOINER = '\u034f'

/** Fault of a text, in the words that follow the path of its field; undefined for none. */
export const textFault = (text: string, kind: TextKind): string | undefined => {
  if (HALF.test(text)) return 'must be valid Unicode'
  if (MANY_MARKS.test(text)) return 'must not contain over 30 combining marks in a row'
  if (BIDIRECTIONAL.test(text)) return 'must not contain bidirectional control characters'
  if (kind === 'lines') return CONTROL_IN_LINES.test(text) ? 'must not contain control characters' : undefined
  if (CONTROL.test(text)) return 'must not contain control characters or line breaks'
  if (kind !== 'line' && !VISIBLE.test(text)) return 'must not be blank'
  return kind === 'newName' && hasInvisible(text) ? 'must not contain zero width characters' : undefined
}

/** The form in which a text is kept: Unicode NFC, but for keys. */
export const keptText = (text: string, kind: TextKind): string => (kind === 'key' ? text : normalized(text))

/** A Unicode normalization in linear time: putting marks in order takes the square of how many follow each other. */
export const normalized = (text: string, form: 'NFC' | 'NFKC' | 'NFKD' = 'NFC'): string =>
  text.replace(MARKS, `$&${JOINER}`).normalize(form)

/** Characters of Unicode, as JSON Schema counts them. */
export const charsOf = (text: string): number => {
  let chars = 0
  for (const _char of text) chars++
  return chars
}

/** Ids of a request in the form in which they are kept. */
export const lowerCase = (ids: readonly string[]): string[] => ids.map((id) => id.toLowerCase())
