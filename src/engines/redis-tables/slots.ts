export const SLOTS = 16_384

/** The slot of a key: CRC16 (XMODEM) of the content of its first braces, according to the cluster's specification. */
export const slotOf = (key: string): number => {
  const open = key.indexOf('{')
  const end = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = end > open + 1 ? key.slice(open + 1, end) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    crc &= 0xffff
  }
  return crc % SLOTS
}
