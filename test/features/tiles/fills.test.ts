import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { VectorTile } from '@mapbox/vector-tile'
import Pbf from 'pbf'
import { test } from 'tap'
import { type BaseMap, openBaseMap } from '../../../src/features/tiles/base-map.ts'

type Ring = { x: number; y: number }[]

interface Earcut {
  default(vertices: number[], holes: number[]): number[]
  flatten(rings: number[][][]): { vertices: number[]; holes: number[]; dimensions: number }
  deviation(vertices: number[], holes: number[], dimensions: number, triangles: number[]): number
}

/** The triangles that the library of the map fills. */
const EARCUT = createRequire(createRequire(import.meta.url).resolve('maplibre-gl')).resolve('earcut')
/** In units of a tile, of which one is 4096 wide. */
const AREA_FROM = 4096
const DEVIATION_MAX = 0.01

const areaOf = (ring: Ring): number =>
  ring.reduce((sum, { x, y }, i) => {
    const before = ring.at(i - 1)!
    return sum + ((before.x - x) * (before.y + y)) / 2
  }, 0)

/** Polygons of a feature as the map takes them: a ring that turns as the first does begins one, others are its holes. */
const polygonsOf = (rings: Ring[]): Ring[][] => {
  const polygons: Ring[][] = []
  const sign = Math.sign(areaOf(rings[0]!))
  for (const ring of rings) {
    if (Math.sign(areaOf(ring)) === sign) polygons.push([ring])
    else if (areaOf(ring) !== 0) polygons.at(-1)!.push(ring)
  }
  return polygons
}

test('land and lakes are filled where they are: their triangles have the area of their rings', async (t) => {
  const { default: earcut, flatten, deviation } = (await import(pathToFileURL(EARCUT).href)) as Earcut
  const map = openBaseMap()
  let filled = 0
  const check = (place: string, polygon: Ring[]): void => {
    if (Math.abs(polygon.reduce((sum, ring) => sum + areaOf(ring), 0)) <= AREA_FROM) return
    const { vertices, holes, dimensions } = flatten(polygon.map((ring) => ring.slice(0, -1).map(({ x, y }) => [x, y])))
    const found = deviation(vertices, holes, dimensions, earcut(vertices, holes))
    if (found > DEVIATION_MAX) t.fail(`${place}: the area is missed by ${found.toFixed(3)} of it`)
    filled++
  }
  for (let z = 0; z <= map.zoomMax; z++)
    for (let x = 0; x < 2 ** z; x++)
      for (let y = 0; y < 2 ** z; y++) {
        const stored = map.tile(z, x, y)
        if (stored === undefined) continue
        const { layers } = new VectorTile(new Pbf(gunzipSync(stored)))
        for (const name of ['land', 'lakes'])
          for (let i = 0; i < (layers[name]?.length ?? 0); i++)
            for (const polygon of polygonsOf(layers[name]!.feature(i).loadGeometry()))
              check(`${name} of ${z}/${x}/${y}`, polygon)
      }
  t.ok(filled > 9_000, `${filled} polygons`)
})

/** The place in its tile, by even-odd of all rings of land. */
const isLand = (map: BaseMap, z: number, lng: number, lat: number): boolean => {
  const sine = Math.sin((lat * Math.PI) / 180)
  const across = (lng / 360 + 0.5) * 2 ** z
  const down = (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)) * 2 ** z
  const stored = map.tile(z, Math.floor(across), Math.floor(down))
  const land = stored && new VectorTile(new Pbf(gunzipSync(stored))).layers.land
  const at = { x: (across % 1) * 4096, y: (down % 1) * 4096 }
  let crossed = 0
  for (let i = 0; i < (land?.length ?? 0); i++)
    for (const ring of land!.feature(i).loadGeometry())
      ring.forEach((b, j) => {
        const a = ring.at(j - 1)!
        if (a.y > at.y !== b.y > at.y && at.x < a.x + ((at.y - a.y) / (b.y - a.y)) * (b.x - a.x)) crossed++
      })
  return crossed % 2 === 1
}

test('land that goes on beyond 180 degrees leaves no band across the map', async (t) => {
  const map = openBaseMap()
  const places: [name: string, lng: number, lat: number, isLand: boolean][] = [
    ['Norwegian Sea', 0, 67, false],
    ['Barents Sea', 40, 71, false],
    ['Bering Sea', 179, 60, false],
    ['North Sea', 3, 56, false],
    ['Bay of Biscay', -5, 45.5, false],
    ['Lapland', 26, 67, true],
    ['Chukotka', 179, 67.5, true],
    ['Chukotka, beyond 180', -178, 67.5, true],
    ['Wrangel Island', -179.6, 71.2, true],
    ['Taymyr', 100, 74, true],
    ['Antarctica', 100, -75, true],
    ['Castile', -4, 41, true],
  ]
  for (const [name, lng, lat, expected] of places)
    for (let z = 0; z <= map.zoomMax; z++) t.equal(isLand(map, z, lng, lat), expected, `${name} at zoom ${z}`)
})
