import { authenticateService } from '../features/identity/sessions/authenticate-service.ts'
import { createAuthenticator } from '../features/identity/sessions/authenticate.ts'
import { SessionUses } from '../features/identity/sessions/session-uses.ts'
import { Tokens } from '../features/identity/sessions/tokens.ts'
import { watchAccess } from '../features/identity/sessions/watch-access.ts'
import { webhookDocuments } from '../features/automations/webhook-documents.ts'
import { INGEST_DOCUMENT } from '../features/locations/ingest/document.ts'
import { DeviceAuthenticator } from '../features/trackers/device-authenticator.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import { isServiceKey } from '../features/service-accounts/views.ts'
import type { AccessChange } from '../ingress/options.ts'
import type { Port } from '../ingress/port.ts'
import { startIngress } from '../ingress/server.ts'
import type { Channel } from '../kit/http/channel.ts'
import type { Route } from '../kit/http/route.ts'
import { liveDocument } from '../live/document.ts'
import { FEATURES } from '../product.ts'
import type { RoleServices } from './role.ts'

/** Version of the API that its documents describe. */
const VERSION = '3.0.0'

/** HTTP and WebSocket: authenticates callers and serves the roles of this process. */
export const openDoor = async (
  services: RoleServices,
  port: Port,
  { routes, channels }: { routes: readonly Route[]; channels: readonly Channel[] },
) => {
  const { config, tables, keyring } = services
  const uses = new SessionUses(services)
  const used = (jti: string, expiresAt: number): void => uses.note(jti, expiresAt)
  const users = createAuthenticator({ ...services, used }, new Tokens(keyring, config.tokenTtlMs))
  const devices = new DeviceAuthenticator(tables, keyring)
  const listeners = new Set<(change: AccessChange) => void>()
  const tell = (change: AccessChange): void => {
    for (const listener of listeners) listener(change)
  }
  const watching = await Promise.all([
    watchAccess(services, tell),
    watchTrackers(services, 'door-trackers', { devices, onAccessChanged: tell }),
  ])
  const unwatch = async (): Promise<void> => {
    for (const follower of watching) await follower.close()
  }
  const ingress = await startIngress(port, {
    ...services,
    routes,
    channels,
    channelDocuments: [INGEST_DOCUMENT, liveDocument(FEATURES.flatMap(({ liveEvents = [] }) => liveEvents))],
    webhookDocuments: webhookDocuments(services.resources),
    info: { title: 'Waymark', version: VERSION, description: 'Real-time location streaming and field operations.' },
    authenticate: (token) => {
      if (isServiceKey(token)) return authenticateService({ ...services, used }, token)
      return devices.takes(token) ? devices.authenticate(token) : users.authenticate(token)
    },
    authenticateRevoked: (token) => users.authenticateRevoked(token),
    accessChanged: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    rollout: services.inRollout,
    rateLimits: { token: config.rateLimitToken, organization: config.rateLimitOrg, address: config.rateLimitAddress },
    trustedProxies: config.trustedProxies,
    ownHosts: [config.host, ...(config.publicUrl === undefined ? [] : [new URL(config.publicUrl).hostname])],
    corsOrigins: config.corsOrigins,
    isolatedHost: config.addonOrigin && new URL(config.addonOrigin).host,
    metricsToken: config.metricsToken,
  }).catch(async (error: unknown) => {
    await unwatch()
    throw error
  })
  return {
    stopAccepting: (withinMs: number) => ingress.stopAccepting(withinMs),
    close: async (): Promise<void> => {
      await ingress.close()
      await unwatch()
    },
  }
}
