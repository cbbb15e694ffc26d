/** Letters that Unicode does not decompose, with the usual replacements on keyboards that lack them. */
const PLAIN_LETTERS: ReadonlyMap<string, string> = new Map(
  'æ:ae œ:oe ß:ss þ:th ŋ:n ĸ:k ı:i ə:e ð:d ς:σ ł:l ø:o đ:d ħ:h ŧ:t ƀ:b ɇ:e ǥ:g ɨ:i ɉ:j ɍ:r ʉ:u ɏ:y ƶ:z'
    .split(' ')
    .map((pair) => pair.split(':') as [letter: string, plain: string]),
)
const WITH_PLAIN_LETTERS = new RegExp(`[${[...PLAIN_LETTERS.keys()].join('')}]`, 'g')

/** A text without accents and in lower case, as in the service's own search. */
export const plainText = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(WITH_PLAIN_LETTERS, (letter) => PLAIN_LETTERS.get(letter) as string)
