import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { Failure } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { type Reply, route, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { type Ranged, rangedAnswers, sendRanged } from '../../kit/http/send-ranged.ts'
import { ownShares } from '../../kit/http/own-share.ts'
import { userOf } from '../../kit/http/request-context.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { BaseMap } from './base-map.ts'
import { TRACE_ZOOM_MAX, traceTile } from './traces.ts'

const TAG = 'Map'
const VECTOR_TILE = 'application/vnd.mapbox-vector-tile'

const number = (description: string): JsonSchema => ({ type: 'string', pattern: '^\\d{1,9}$', description })
const TILE_PARAMS = { z: number('The zoom.'), x: number('The column.'), y: number('The row.') }

/** Base map: the shipped one, and the street archive named by `--map`. */
export const tileRoutes = (base: BaseMap, mapPath: string | undefined): Route[] => [
  baseRoute(base),
  ...(mapPath === undefined ? [] : [archiveRoute(mapPath)]),
]

export interface TraceServices {
  history: HistoryReader
  /** Trackers whose points the caller may see. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
  /** Points further apart in time are not connected. */
  gapMs: number
}

const DAYS = 30
const DAY_MS = 86_400_000

/** Positions of the caller's own trackers. */
export const traceRoutes = (services: TraceServices): Route[] => {
  const history = ownShares(services.history)
  return [
    route<{ days?: number }>({
      method: 'GET',
      path: '/tiles/traces/{z}/{x}/{y}',
      operationId: 'getTraceTile',
      summary: 'Where the trackers that the caller may see have driven, as a vector tile',
      description: `Zoom 0 to ${TRACE_ZOOM_MAX}; a map shows the last ones larger. The layer \`traces\` has points, each in the middle of a cell: 256 cells along the edge of a tile, from zoom 12 on cells of 38 m at the equator. \`count\` is how many quarters of an hour of trackers met the cell, rounded down to a power of two. 204 where nothing was driven.`,
      tag: TAG,
      access: { permission: 'view/location-history', own: true },
      params: TILE_PARAMS,
      query: {
        type: 'object',
        additionalProperties: false,
        properties: {
          days: { type: 'integer', minimum: 1, maximum: 365, description: `Up to now. Left out: ${DAYS}.` },
        },
      },
      answers: {
        200: { description: 'The tile.', contentType: VECTOR_TILE },
        204: { description: 'Nothing was driven here.' },
      },
      handler: async (request) => {
        const [z, x, y] = [Number(request.params.z), Number(request.params.x), Number(request.params.y)]
        if (z > TRACE_ZOOM_MAX || x >= 2 ** z || y >= 2 ** z) throw new Failure('not_found')
        const caller = userOf(request)
        const filter = {
          organizationId: caller.organizationId,
          trackerIds: await services.visibleTrackers(caller),
          from: request.now - (request.query.days ?? DAYS) * DAY_MS,
        }
        const tile = await traceTile(history, filter, { z, x, y }, services.gapMs, request.signal)
        const headers = { 'cache-control': 'no-store' }
        if (tile === undefined) return { status: 204, raw: '', headers }
        return { raw: tile, headers: { ...headers, 'content-type': VECTOR_TILE } }
      },
    }),
  ]
}

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
  // It changes only with a version of the service.
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
