/** Raise it when `wordsOf` makes other words of a text: tables of words are then rebuilt. */
export const WORDS_VERSION = 1

const WORD_CHARACTERS_MAX = 100

/** The words of a text as search compares them: without accents, in lower case, each once. */
export const wordsOf = (text: string): string[] => {
  const isAscii = /^[\0-\x7f]*$/.test(text)
  const plain = isAscii ? text.toLowerCase() : plainText(text)
  const words = new Set<string>()
  for (const word of plain.split(isAscii ? /[^a-z0-9]+/ : /[^\p{L}\p{N}]+/u))
    if (word !== '') words.add(wordStart(word))
  return [...words]
}

/** Letters that Unicode does not decompose, as they are typed on keyboards without them. */
const PLAIN_LETTERS: ReadonlyMap<string, string> = new Map(
  'æ:ae œ:oe ß:ss þ:th ŋ:n ĸ:k ı:i ə:e ð:d ς:σ ł:l ø:o đ:d ħ:h ŧ:t ƀ:b ɇ:e ǥ:g ɨ:i ɉ:j ɍ:r ʉ:u ɏ:y ƶ:z'
    .split(' ')
    .map((pair) => pair.split(':') as [letter: string, plain: string]),
)
const WITH_PLAIN_LETTERS = new RegExp(`[${[...PLAIN_LETTERS.keys()].join('')}]`, 'g')

/** A text without accents and in lower case. The page's filter compares names by it. */
export const plainText = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(WITH_PLAIN_LETTERS, (letter) => PLAIN_LETTERS.get(letter) as string)

/** Part of a word that is indexed. Half a character is left out: as bytes, all halves are the same. */
export const wordStart = (word: string): string =>
  word.length <= WORD_CHARACTERS_MAX ? word : word.slice(0, WORD_CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, '')

/** The words of all these fields of a row; a field may be a string or an array of strings. */
export const wordsOfRow = (row: { [field: string]: unknown }, fields: readonly string[]): string[] => {
  const words = new Set<string>()
  for (const field of fields) {
    const value = row[field]
    for (const text of Array.isArray(value) ? value : [value]) {
      if (typeof text === 'string') for (const word of wordsOf(text)) words.add(word)
    }
  }
  return [...words]
}
