import type { Config } from '../config.ts'
import { webhookDocuments } from '../features/automations/webhook-documents.ts'
import { INGEST_DOCUMENT } from '../features/locations/ingest/document.ts'
import type { IngressOptions } from '../ingress/options.ts'
import { startIngress } from '../ingress/server.ts'
import type { Services } from '../kit/services.ts'
import { LIVE_DOCUMENT } from '../live/document.ts'
import { resources } from './resources.ts'

/** Of the API that its documents describe. */
const VERSION = '3.0.0'

/** What of the ingress this process makes; the rest follows from configuration and services. */
type Doors = Pick<
  IngressOptions,
  'routes' | 'channels' | 'authenticate' | 'accessChanged' | 'settle' | 'rollout' | 'metrics'
>

/** The door to HTTP and WebSocket, as configured. @throws Error for a port that is taken. */
export const openIngress = (config: Config, { tables, keyring, logger, clock }: Services, doors: Doors) =>
  startIngress({
    host: config.host,
    port: config.port,
    tls: config.tls && { certFile: config.tls.certPath, keyFile: config.tls.keyPath },
    channelDocuments: [INGEST_DOCUMENT, LIVE_DOCUMENT],
    webhookDocuments: webhookDocuments(resources),
    info: { title: 'Waymark', version: VERSION, description: 'Real-time location streaming and field operations.' },
    tables,
    keyring,
    logger,
    clock,
    rateLimits: { token: config.rateLimitToken, organization: config.rateLimitOrg, address: config.rateLimitAddress },
    trustedProxies: config.trustedProxies,
    corsOrigins: config.corsOrigins,
    metricsToken: config.metricsToken,
    ...doors,
  })
