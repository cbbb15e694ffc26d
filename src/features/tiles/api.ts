import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { Failure } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { type Reply, route, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { type Ranged, rangedAnswers, sendRanged } from '../../kit/http/send-ranged.ts'
import type { BaseMap } from './base-map.ts'

const TAG = 'Map'
const VECTOR_TILE = 'application/vnd.mapbox-vector-tile'

const number = (description: string): JsonSchema => ({ type: 'string', pattern: '^\\d{1,9}$', description })
const TILE_PARAMS = { z: number('The zoom.'), x: number('The column.'), y: number('The row.') }

/** The ground of maps: what is shipped, and the archive of streets that `--map` names. */
export const tileRoutes = (base: BaseMap, mapPath: string | undefined): Route[] => [
  baseRoute(base),
  ...(mapPath === undefined ? [] : [archiveRoute(mapPath)]),
]

const baseRoute = (base: BaseMap): Route =>
  route({
    method: 'GET',
    path: '/tiles/base/{z}/{x}/{y}',
    operationId: 'getBaseTile',
    summary: 'A vector tile of the base map: land, water, borders, countries and cities',
    description: `Zoom 0 to ${base.zoomMax}; a map shows the last ones larger. 204 where there is nothing but water. Natural Earth; GeoNames, CC BY 4.0.`,
    tag: TAG,
    access: 'public',
    params: TILE_PARAMS,
    answers: {
      200: { description: 'The tile.', contentType: VECTOR_TILE },
      204: { description: 'There is nothing but water.' },
    },
    handler: async ({ params, headers }) => {
      const [z, x, y] = [Number(params.z), Number(params.x), Number(params.y)]
      if (z > base.zoomMax || x >= 2 ** z || y >= 2 ** z) throw new Failure('not_found')
      return tileReply(base.tile(z, x, y), headers)
    },
  })

const tileReply = (tile: Buffer | undefined, headers: RouteRequest['headers']): Reply => {
  // It changes with a version of the service alone.
  const common = { 'cache-control': 'public, max-age=86400', vary: 'Accept-Encoding' }
  if (tile === undefined) return { status: 204, raw: '', headers: common }
  const takesGzip = /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers.get('accept-encoding') ?? '')
  return {
    raw: takesGzip ? tile : gunzipSync(tile),
    headers: { ...common, 'content-type': VECTOR_TILE, ...(takesGzip && { 'content-encoding': 'gzip' }) },
  }
}

const archiveRoute = (path: string): Route =>
  route({
    method: 'GET',
    path: '/tiles/map.pmtiles',
    operationId: 'getMapArchive',
    summary: 'The archive of streets that the operator named by --map (PMTiles)',
    tag: TAG,
    access: 'public',
    answers: rangedAnswers('The archive.', 'application/vnd.pmtiles'),
    handler: async (request) => {
      const file = await stat(path).catch(() => undefined)
      if (file === undefined) throw new Failure('not_found')
      const { size, mtimeMs } = file
      return sendRanged(onDisk(path, size), request, {
        etag: `"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}"`,
        cacheControl: 'public, no-cache',
        contentType: 'application/vnd.pmtiles',
      })
    },
  })

const onDisk = (path: string, bytes: number): Ranged => ({
  get: async ({ from, to } = { from: 0, to: bytes - 1 }) => ({
    bytes,
    stream: from >= bytes ? nothing() : createReadStream(path, { start: from, end: Math.min(to, bytes - 1) }),
  }),
})

async function* nothing(): AsyncGenerator<Uint8Array> {}
