import { normalized } from './text.ts'

/** Raise it when `wordsOf` makes other words of a text: tables of words are then rebuilt. */
export const WORDS_VERSION = 2

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
  [
    'æ:ae œ:oe ß:ss þ:th ŋ:n ĸ:k ı:i ə:e ð:d ς:σ ł:l ø:o đ:d ħ:h ŧ:t ƀ:b ɇ:e ǥ:g ɨ:i ɉ:j ɍ:r ʉ:u ɏ:y ƶ:z',
    // Arabic letters that are typed for each other, the line that stretches a word, and digits.
    '\u0649:\u064a \u06cc:\u064a \u06a9:\u0643 \u0629:\u0647 \u06c1:\u0647 \u06be:\u0647 \u06d5:\u0647 \u0640:',
    '\u0660:0 \u0661:1 \u0662:2 \u0663:3 \u0664:4 \u0665:5 \u0666:6 \u0667:7 \u0668:8 \u0669:9',
    '\u06f0:0 \u06f1:1 \u06f2:2 \u06f3:3 \u06f4:4 \u06f5:5 \u06f6:6 \u06f7:7 \u06f8:8 \u06f9:9',
  ]
    .flatMap((pairs) => pairs.split(' '))
    .map((pair) => pair.split(':') as [letter: string, plain: string]),
)
const WITH_PLAIN_LETTERS = new RegExp(`[${[...PLAIN_LETTERS.keys()].join('')}]`, 'g')

/** A text without accents and in lower case. The page's filter compares names by it. */
export const plainText = (text: string): string =>
  normalized(text, 'NFKD')
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
