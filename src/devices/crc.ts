/** Table of a reflected CRC of 16 bits. */
const tableOf = (polynomial: number): Uint16Array =>
  Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    return crc
  })

const over = (table: Uint16Array, bytes: Uint8Array, initial: number): number => {
  let crc = initial
  for (let at = 0; at < bytes.byteLength; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]) & 0xff]
  return crc
}

const IBM = tableOf(0xa001)
const X25 = tableOf(0x8408)

/** CRC-16/IBM (ARC), as Teltonika has it. */
export const crc16Ibm = (bytes: Uint8Array): number => over(IBM, bytes, 0)

/** CRC-16/X25, as GT06 has it. */
export const crc16X25 = (bytes: Uint8Array): number => over(X25, bytes, 0xffff) ^ 0xffff
