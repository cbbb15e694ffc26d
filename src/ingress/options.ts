import type { TableStore } from '../engines/table-store.ts'
import type { Caller, UserCaller } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Settle } from '../kit/consumers/settle.ts'
import type { ChannelDocument } from '../kit/http/channel-document.ts'
import type { Channel } from '../kit/http/channel.ts'
import type { Keyring } from '../kit/keys/keyring.ts'
import type { Life } from '../kit/operations/life.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Route } from '../kit/http/route.ts'
import type { WebhookDocument } from '../kit/http/webhook-document.ts'

/** A change of access rights; every socket that it names is looked up again. */
export interface AccessChange {
  organizationId: string
  userId?: string
  jti?: string
  trackerId?: string
  keyId?: string
  /** Time before sockets are looked up: after `refresh` revoked a token there is time for a new `auth`. */
  graceMs?: number
}

/** Requests a second; absent: no limit. A bucket holds one second's worth. */
export interface RateLimits {
  token?: number
  organization?: number
  address?: number
}

/** Bounds of the door. Every one of them has a named answer when it is reached. */
export interface IngressLimits {
  /** Requests under way; further ones are answered 503 `overloaded`. */
  requestsMax: number
  /** Bytes of request bodies in memory at one time; further ones are answered 503 `overloaded`. */
  bodyBytesInFlightMax: number
  /** A body that is incomplete after this time and one second for each 32 KiB of it is answered 408. */
  bodyTimeoutMs: number
  /** Sockets of one address that have not authenticated; further ones are refused with 429. */
  unauthenticatedPerAddressMax: number
  unauthenticatedMax: number
  /** Time for the first `auth` message of a socket. */
  authTimeoutMs: number
  /** Silence after which a socket is closed; pings are sent before. */
  socketIdleSeconds: number
  /** Longest wait of `close` for requests under way. */
  closeTimeoutMs: number
}

export const DEFAULT_LIMITS: IngressLimits = {
  requestsMax: 10_000,
  bodyBytesInFlightMax: 512 * 1024 * 1024,
  bodyTimeoutMs: 30_000,
  unauthenticatedPerAddressMax: 5_000,
  unauthenticatedMax: 20_000,
  authTimeoutMs: 5_000,
  socketIdleSeconds: 60,
  closeTimeoutMs: 3_000,
}

export interface ApiInfo {
  title: string
  version: string
  description: string
}

export interface IngressOptions {
  routes: readonly Route[]
  channels: readonly Channel[]
  /** Messages of the channels, for the AsyncAPI document. */
  channelDocuments: readonly ChannelDocument[]
  /** Content of webhooks, for the OpenAPI document. */
  webhookDocuments: readonly WebhookDocument[]
  info: ApiInfo
  /** @throws Failure `unauthenticated` for a credential that is unknown, expired or revoked, `engine_down`. */
  authenticate(token: string): Promise<Caller>
  /** The same for a user's revoked token: for a repeat of the call that revoked it. */
  authenticateRevoked?(token: string): Promise<Caller>
  accessChanged(listener: (change: AccessChange) => void): () => void
  settle: Settle
  /** Whether the caller's organization takes part in the geofence rollout, or a user by the domain of their verified e-mail. */
  rollout(caller: Pick<UserCaller, 'organizationId' | 'verifiedEmail'>): boolean
  tables: TableStore
  keyring: Keyring
  life: Life
  logger: Logger
  clock: Clock
  metrics: Metrics
  rateLimits?: RateLimits
  /** CIDR ranges whose `X-Forwarded-For` counts. */
  trustedProxies?: readonly string[]
  /** Names of this machine, beside `localhost`, that a `Host` of a client on it may have. */
  ownHosts?: readonly string[]
  /** Origins that browsers may call from; `*` for any. */
  corsOrigins?: readonly string[]
  /** The host of add-ons: only routes that are `isolated` answer there. */
  isolatedHost?: string
  /** Bearer of operator routes; without it they answer to loopback only. */
  metricsToken?: string
  limits?: Partial<IngressLimits>
}

export interface Ingress {
  /** No new connections or sockets; requests under way continue. Resolves when none is left, or the time is over. */
  stopAccepting(withinMs: number): Promise<void>
  /** Closes sockets with 1012, waits for requests under way, then cuts the rest. */
  close(): Promise<void>
}
