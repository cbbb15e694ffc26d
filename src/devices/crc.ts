/** Tables of a reflected CRC of 16 bits: of a byte, and of a byte with one, two and three zeros behind it, to take four at once. */
const tablesOf = (polynomial: number): Uint16Array[] => {
  const first = Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    return crc
  })
  const tables = [first]
  for (let zeros = 1; zeros < 4; zeros++) tables.push(tables[zeros - 1].map((crc) => (crc >>> 8) ^ first[crc & 0xff]))
  return tables
}

const over = ([first, second, third, fourth]: readonly Uint16Array[], bytes: Uint8Array, initial: number): number => {
  let crc = initial
  let at = 0
  for (const end = bytes.byteLength - 3; at < end; at += 4)
    crc =
      fourth[(crc ^ bytes[at]) & 0xff] ^
      third[((crc >>> 8) ^ bytes[at + 1]) & 0xff] ^
      second[bytes[at + 2]] ^
      first[bytes[at + 3]]
  for (; at < bytes.byteLength; at++) crc = (crc >>> 8) ^ first[(crc ^ bytes[at]) & 0xff]
  return crc
}

const IBM = tablesOf(0xa001)
const X25 = tablesOf(0x8408)

/** CRC-16/IBM (ARC), used by Teltonika. */
export const crc16Ibm = (bytes: Uint8Array): number => over(IBM, bytes, 0)

/** CRC-16/X25, used by GT06. */
export const crc16X25 = (bytes: Uint8Array): number => over(X25, bytes, 0xffff) ^ 0xffff
