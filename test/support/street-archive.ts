import { fromGeojsonVt } from '@maplibre/vt-pbf'
import { zxyToTileId } from 'pmtiles'

const HEADER_BYTES = 127
const NOT_COMPRESSED = 1
const MVT = 1
const EXTENT = 4096

export interface StreetTile {
  z: number
  x: number
  y: number
}

/** A vector tile with one road from its west to its east. */
export const roadTile = (layer = 'roads'): Buffer => {
  const road = {
    type: 2,
    geometry: [
      [
        [0, EXTENT / 2],
        [EXTENT, EXTENT / 2],
      ],
    ],
    tags: { kind: 'major_road', name: 'Long road' },
  }
  return Buffer.from(fromGeojsonVt({ [layer]: { features: [road] } } as never, { version: 2, extent: EXTENT }))
}

/** An archive in the form of PMTiles 3 with one tile, a road through its middle. */
export const streetArchive = ({ z, x, y }: StreetTile, attribution: string): Buffer => {
  const tile = roadTile()
  const root = Buffer.from([1, ...varint(zxyToTileId(z, x, y)), 1, ...varint(tile.length), 1])
  const metadata = Buffer.from(JSON.stringify({ attribution, vector_layers: [{ id: 'roads', fields: {} }] }))
  const metadataAt = HEADER_BYTES + root.length
  const dataAt = metadataAt + metadata.length
  const header = Buffer.alloc(HEADER_BYTES)
  header.write('PMTiles')
  header[7] = 3
  const places = [HEADER_BYTES, root.length, metadataAt, metadata.length, dataAt, 0, dataAt, tile.length, 1, 1, 1]
  for (const [i, value] of places.entries()) header.writeBigUInt64LE(BigInt(value), 8 + i * 8)
  header.set([1, NOT_COMPRESSED, NOT_COMPRESSED, MVT, z, z], 96)
  for (const [i, degrees] of [-180, -85, 180, 85].entries()) header.writeInt32LE(degrees * 1e7, 102 + i * 4)
  return Buffer.concat([header, root, metadata, tile])
}

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(value >> 7)])
