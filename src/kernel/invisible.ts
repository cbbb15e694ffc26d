/** Signs of Indic and South-East Asian scripts that join letters (canonical combining class 9), as RFC 5892 names them. */
const VIRAMA =
  '\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a\\u0eba\\u0f84\\u1039\\u103a\\u1714\\u1734' +
  '\\u17d2\\u1a60\\u1b44\\u1baa\\u1bab\\u1bf2\\u1bf3\\u2d7f\\ua806\\ua82c\\ua8c4\\ua953\\ua9c0\\uaaf6\\uabed\\u{11046}\\u{1107f}\\u{110b9}' +
  '\\u{11133}\\u{11134}\\u{111c0}\\u{11235}\\u{112ea}\\u{1134d}\\u{11442}\\u{114c2}\\u{115bf}\\u{1163f}\\u{116b6}\\u{1172b}\\u{11839}' +
  '\\u{119e0}\\u{11c3f}\\u{11d45}\\u{11d97}'
const JOINING = '\\p{sc=Arab}\\p{sc=Syrc}\\p{sc=Nkoo}\\p{sc=Mand}\\p{sc=Mong}\\p{sc=Adlm}\\p{sc=Rohg}'
/** Letters of these scripts that do not join the letter after them (Joining_Type R and U). */
const ENDING =
  '\\u0621-\\u0625\\u0627\\u0629\\u062f-\\u0632\\u0648\\u0671-\\u0677\\u0688-\\u0699\\u06c0\\u06c3-\\u06cb\\u06cd\\u06cf\\u06d2\\u06d3\\u06d5' +
  '\\u06ee\\u06ef\\u0710\\u0715-\\u0719\\u071e\\u0728\\u072a\\u072c\\u072f\\u074d\\u0759-\\u075b\\u076b\\u076c\\u0771\\u0773\\u0774' +
  '\\u0778\\u0779\\u0840\\u0846\\u0847\\u0849\\u0854\\u0856-\\u0858\\u0870-\\u0882\\u088e\\u08aa-\\u08ae\\u08b1\\u08b2\\u08b9'

/** Contexts in which an invisible character changes the visible text: elsewhere it only makes look-alikes. */
const NEEDED = [
  // RFC 5892, appendix A.1 and A.2.
  `(?<=[${VIRAMA}])[\\u200c\\u200d]`,
  `(?<=(?=[${JOINING}])\\p{L}(?<![${ENDING}])\\p{Mn}*)\\u200c(?=\\p{Mn}*(?=[${JOINING}])\\p{L})`,
  // One emoji made of several, its form, the keys, and flags of regions.
  '(?<=\\p{ExtPict}[\\p{EMod}\\ufe0f]*)\\u200d(?=\\p{ExtPict})',
  '(?<=\\p{ExtPict})[\\ufe0e\\ufe0f]',
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
  '(?<=\\u{1f3f4})[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]+\\u{e007f}',
  // Selects the form of a character.
  '(?<=\\p{sc=Han})[\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]',
  '(?<=\\p{sc=Mong})[\\u180b-\\u180d\\u180f]',
].join('|')

const INVISIBLE = /\p{DI}/u
const NEEDED_OR_INVISIBLE = new RegExp(`(${NEEDED})|\\p{DI}`, 'gu')
/** Maximum length of a name, in UTF-16: longer ones are refused anyway, and lookarounds in them take long. */
const CHARS_MAX = 1_000

/** The text without invisible characters that do not change how it reads. */
export const withoutInvisible = (text: string): string =>
  INVISIBLE.test(text) && text.length <= CHARS_MAX
    ? text.replace(NEEDED_OR_INVISIBLE, (_found, needed: string | undefined) => needed ?? '')
    : text

/** Whether a name has an invisible character that does not change how it reads. */
export const hasInvisible = (text: string): boolean => withoutInvisible(text) !== text
