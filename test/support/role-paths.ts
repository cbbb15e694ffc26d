import { deviceRoutes } from '../../src/features/devices/http-routes.ts'
import { bulkRoute } from '../../src/features/locations/ingest/bulk-api.ts'
import { INGEST_DOCUMENT } from '../../src/features/locations/ingest/document.ts'
import { API_BASE } from '../../src/ingress/router.ts'
import type { Route } from '../../src/kit/http/route.ts'
import { liveDocument } from '../../src/live/document.ts'

const pathOf = ({ path, root }: Route): string => (root ? path : API_BASE + path).replace(/\{\w+\}/g, 'x')

/** Paths that the role `ingress` alone answers. */
export const ingressPaths = (): string[] => [
  API_BASE + INGEST_DOCUMENT.path,
  pathOf(bulkRoute(undefined as never, undefined as never)),
  ...deviceRoutes(undefined as never).map(pathOf),
]

/** Paths that the role `live` alone answers. */
export const livePaths = (): string[] => [API_BASE + liveDocument([]).path]
