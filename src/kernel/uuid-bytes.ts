const DIGITS = '0123456789abcdef'
const CODES = Uint8Array.from(DIGITS, (digit) => digit.charCodeAt(0))
/** Character codes of the two digits of a byte. */
const HIGH = Uint8Array.from({ length: 256 }, (_, byte) => CODES[byte >> 4])
const LOW = Uint8Array.from({ length: 256 }, (_, byte) => CODES[byte & 15])
const NIBBLE = new Int8Array(128).fill(-1)
for (let digit = 0; digit < 16; digit++) {
  NIBBLE[DIGITS.charCodeAt(digit)] = digit
  NIBBLE[DIGITS[digit].toUpperCase().charCodeAt(0)] = digit
}
/** Offsets of the 16 bytes in the text of a UUID, and of its dashes. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const DASHES = [8, 13, 18, 23]

/** Writes the 16 bytes of a UUID. @throws Error if the text is no UUID. */
export const writeUuid = (text: string, bytes: Uint8Array, at: number): void => {
  if (text.length !== 36) throw new Error(`not a UUID: ${text}`)
  let wrong = 0
  for (let i = 0; i < 4; i++) if (text.charCodeAt(DASHES[i]) !== 45) wrong = -1
  for (let i = 0; i < 16; i++) {
    const place = PLACES[i]
    const high = NIBBLE[text.charCodeAt(place) & 127]
    const low = NIBBLE[text.charCodeAt(place + 1) & 127]
    wrong |= high | low
    bytes[at + i] = (high << 4) | low
  }
  if (wrong < 0) throw new Error(`not a UUID: ${text}`)
}

/** The text of a UUID, lower case. Joined of digits by `+` it would take four times as long until a map has looked it up. */
export const readUuid = (b: Uint8Array, at: number): string =>
  // biome-ignore format: a group of the text on a line
  String.fromCharCode(
    HIGH[b[at]], LOW[b[at]], HIGH[b[at + 1]], LOW[b[at + 1]], HIGH[b[at + 2]], LOW[b[at + 2]], HIGH[b[at + 3]], LOW[b[at + 3]],
    45, HIGH[b[at + 4]], LOW[b[at + 4]], HIGH[b[at + 5]], LOW[b[at + 5]],
    45, HIGH[b[at + 6]], LOW[b[at + 6]], HIGH[b[at + 7]], LOW[b[at + 7]],
    45, HIGH[b[at + 8]], LOW[b[at + 8]], HIGH[b[at + 9]], LOW[b[at + 9]],
    45, HIGH[b[at + 10]], LOW[b[at + 10]], HIGH[b[at + 11]], LOW[b[at + 11]], HIGH[b[at + 12]], LOW[b[at + 12]],
    HIGH[b[at + 13]], LOW[b[at + 13]], HIGH[b[at + 14]], LOW[b[at + 14]], HIGH[b[at + 15]], LOW[b[at + 15]],
  )
