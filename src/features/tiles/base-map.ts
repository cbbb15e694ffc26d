import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

/** Land, water, borders and cities (scripts/make-base-map.mjs); in the sources because it is not compiled. */
const SHIPPED = fileURLToPath(new URL('../../../../src/features/tiles/base.pmtiles', import.meta.url))

const HEADER_BYTES = 127

interface Entry {
  tileId: number
  runLength: number
  at: number
  bytes: number
}

export interface BaseMap {
  zoomMax: number
  /** The stored tile, with gzip; undefined if it is only water, or does not exist. */
  tile(z: number, x: number, y: number): Buffer | undefined
}

/** Reads a one-directory archive into memory (PMTiles, version 3). @throws Error for another file */
export const openBaseMap = (): BaseMap => {
  const archive = readFileSync(SHIPPED)
  const placeAt = (i: number): number => Number(archive.readBigUInt64LE(8 + i * 8))
  const [rootAt, rootBytes, dataAt] = [placeAt(0), placeAt(1), placeAt(6)]
  if (archive.toString('latin1', 0, 8) !== 'PMTiles\x03' || rootAt !== HEADER_BYTES)
    throw new Error(`${SHIPPED} is no PMTiles archive of version 3`)
  const entries = entriesOf(gunzipSync(archive.subarray(rootAt, rootAt + rootBytes)))
  const zoomMax = archive[101]
  const tile = (z: number, x: number, y: number): Buffer | undefined => {
    if (z > zoomMax || x >= 2 ** z || y >= 2 ** z) return undefined
    const tileId = tileIdOf(z, x, y)
    const entry = lastUpTo(entries, tileId)
    if (entry === undefined || tileId >= entry.tileId + entry.runLength) return undefined
    return archive.subarray(dataAt + entry.at, dataAt + entry.at + entry.bytes)
  }
  return { zoomMax, tile }
}

/** A directory: its numbers by column, each a varint, ids as differences, offsets 0 if contiguous. */
const entriesOf = (directory: Buffer): Entry[] => {
  let place = 0
  const varint = (): number => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = directory[place++]
      value += (byte % 128) * factor
      if (byte < 128) return value
    }
  }
  const entries = Array.from({ length: varint() }, (): Entry => ({ tileId: 0, runLength: 0, at: 0, bytes: 0 }))
  let tileId = 0
  for (const entry of entries) entry.tileId = tileId += varint()
  for (const entry of entries) entry.runLength = varint()
  for (const entry of entries) entry.bytes = varint()
  let end = 0
  for (const entry of entries) {
    const at = varint()
    entry.at = at === 0 ? end : at - 1
    end = entry.at + entry.bytes
  }
  return entries
}

const lastUpTo = (entries: readonly Entry[], tileId: number): Entry | undefined => {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (entries[middle].tileId <= tileId) low = middle + 1
    else high = middle
  }
  return entries[low - 1]
}

/** Position of a tile on the Hilbert curve of its zoom, after all tiles of smaller zooms. */
export const tileIdOf = (z: number, x: number, y: number): number => {
  let id = (4 ** z - 1) / 3
  let [along, across] = [x, y]
  for (let half = 2 ** (z - 1); half >= 1; half /= 2) {
    const [right, lower] = [(along & half) > 0 ? 1 : 0, (across & half) > 0 ? 1 : 0]
    id += half * half * ((3 * right) ^ lower)
    if (lower === 0) {
      if (right === 1) [along, across] = [half - 1 - along, half - 1 - across]
      ;[along, across] = [across, along]
    }
  }
  return id
}
