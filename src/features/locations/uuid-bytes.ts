const HEX: string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const NIBBLE = new Int8Array(128).fill(-1)
for (let digit = 0; digit < 16; digit++) {
  NIBBLE[digit.toString(16).charCodeAt(0)] = digit
  NIBBLE[digit.toString(16).toUpperCase().charCodeAt(0)] = digit
}
/** Offsets of the 16 bytes in the text of a UUID. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

/** Writes the 16 bytes of a UUID. @throws Error if the text is no UUID. */
export const writeUuid = (text: string, bytes: Uint8Array, at: number): void => {
  if (text.length !== 36) throw new Error(`not a UUID: ${text}`)
  let wrong = 0
  for (let i = 0; i < 16; i++) {
    const place = PLACES[i]
    const high = NIBBLE[text.charCodeAt(place) & 127]
    const low = NIBBLE[text.charCodeAt(place + 1) & 127]
    wrong |= high | low
    bytes[at + i] = (high << 4) | low
  }
  if (wrong < 0) throw new Error(`not a UUID: ${text}`)
}

/** The text of a UUID, lower case. */
export const readUuid = (bytes: Uint8Array, at: number): string =>
  `${HEX[bytes[at]]}${HEX[bytes[at + 1]]}${HEX[bytes[at + 2]]}${HEX[bytes[at + 3]]}-${HEX[bytes[at + 4]]}${HEX[bytes[at + 5]]}-${HEX[bytes[at + 6]]}${HEX[bytes[at + 7]]}` +
  `-${HEX[bytes[at + 8]]}${HEX[bytes[at + 9]]}-${HEX[bytes[at + 10]]}${HEX[bytes[at + 11]]}${HEX[bytes[at + 12]]}${HEX[bytes[at + 13]]}${HEX[bytes[at + 14]]}${HEX[bytes[at + 15]]}`
