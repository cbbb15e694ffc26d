import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  addonOriginOf,
  atLeast,
  bytesOf,
  cidrOf,
  devicesOf,
  ConfigError,
  domainOf,
  isLoopback,
  mapOriginOf,
  mapStyleOf,
  mqttOf,
  originOf,
  publicUrlOf,
  rolloutOf,
  serverUrlOf,
  scheduleOf,
  senderOf,
  smtpOf,
} from './config-values.ts'
import { type FlagReader, flagReader, ROLES } from './config-flags.ts'
import { limitsOf } from './config-limits.ts'
import { engineUrlOf } from './engine-urls.ts'

/** Everything that can be set, read once and frozen: FLAGS say what it means. Times in ms, sizes in bytes, unless the name says otherwise. */
export type Config = ReturnType<typeof readConfig>

/** @throws ConfigError naming the flag or variable and the expected value. */
export const readConfig = (args: readonly string[], environment: NodeJS.ProcessEnv = process.env) => {
  const read = flagReader(args, environment)
  const dataPath = resolve(read.text('data'))
  const host = read.text('host')
  return Object.freeze({
    host,
    port: read.integer('port', 0, 65_535),
    dataPath,
    logUrl: engineUrlOf('log', read.text('log')),
    tablesUrl: engineUrlOf('tables', read.text('tables')),
    historyUrl: engineUrlOf('history', read.text('history')),
    filesUrl: engineUrlOf('files', read.given('files') ?? `file:${join(dataPath, 'files')}`),
    keysPath: resolve(read.given('keys') ?? join(dataPath, 'keys.json')),
    partitions: read.integer('partitions', 1, 1_024),
    roles: read.list('role').map((role) => read.oneOf('role', role, ROLES)),
    demo: read.boolean('demo'),
    demoLoginPublic: read.boolean('demo-login-public'),
    signup: signupOf(read, host),
    signupsPerAddress: read.integer('signups-per-address', 1, 1_000_000),
    organizationsPerUser: read.integer('organizations-per-user', 1, 10_000),
    tokenTtlMs: atLeast('token-ttl', read.duration('token-ttl'), 1_000, '1s'),
    tls: tlsOf(read),
    trustedProxies: read.list('trusted-proxies').map((range) => cidrOf('trusted-proxies', range)),
    corsOrigins: read.list('cors-origins').map(originOf),
    addonOrigin: addonOriginOf(read.given('addon-origin')),
    metricsToken: read.given('metrics-token'),
    staleAfterMs: read.duration('stale-after'),
    offlineAfterMs: atLeast(
      'offline-after',
      read.duration('offline-after'),
      read.duration('stale-after'),
      '--stale-after',
    ),
    webhookAllow: read.list('webhook-allow').map((range) => cidrOf('webhook-allow', range)),
    geofenceRollout: rolloutOf(read.list('geofence-rollout')),
    staffDomains: read.list('staff').map(domainOf),
    smtpUrl: smtpOf(read.given('smtp') ?? `file:${join(dataPath, 'mail')}`),
    mailFrom: senderOf(read.text('mail-from')),
    publicUrl: publicUrlOf(read.given('public-url')),
    rateLimitToken: read.optionalNumber('rate-limit-token'),
    rateLimitOrg: read.optionalNumber('rate-limit-org'),
    rateLimitAddress: read.optionalNumber('rate-limit-address'),
    limits: limitsOf(read),
    offlineMaxMs: read.duration('offline-max'),
    osrmUrl: serverUrlOf('osrm', read.given('osrm')),
    fileBytesMax: bytesOf('file-bytes-max', read.text('file-bytes-max')),
    importBytesMax: bytesOf('import-bytes-max', read.text('import-bytes-max')),
    tripStopMs: read.duration('trip-stop'),
    tripGapMs: read.duration('trip-gap'),
    locationHistoryDays: read.integer('location-history-days', 1, 36_500),
    locationLogDays: read.integer('location-log-days', 0, 36_500),
    automationLogDays: read.integer('automation-log-days', 1, 36_500),
    automationMaxAgeMs: read.duration('automation-max-age'),
    orgPointsPerSecond: read.optionalNumber('org-points-per-second'),
    webhookScheduleMs: scheduleOf(read.list('webhook-schedule')),
    ...devicesRead(read),
    ...mapRead(read),
  })
}

const devicesRead = (read: FlagReader) => ({
  devices: devicesOf(read.list('devices'), read.given('devices-key')),
  devicesKey: read.given('devices-key'),
  devicesAllow: read.list('devices-allow').map((range) => cidrOf('devices-allow', range)),
  mqttUrl: mqttOf(read.given('mqtt'), read.given('mqtt-key')),
  mqttKey: read.given('mqtt-key'),
})

const signupOf = (read: FlagReader, host: string) =>
  read.oneOf('signup', read.given('signup') ?? (isLoopback(host) ? 'open' : 'first'), ['open', 'first', 'closed'])

const mapRead = (read: FlagReader) => ({
  mapPath: mapOf(read.given('map')),
  mapStyleUrl: mapStyleOf(read.given('map-style')),
  mapOrigins: read.list('map-origins').map(mapOriginOf),
})

const mapOf = (path: string | undefined): string | undefined => {
  if (path === undefined || existsSync(path)) return path
  throw new ConfigError(`--map must name a PMTiles archive; ${path} does not exist`)
}

const tlsOf = (read: FlagReader): { certPath: string; keyPath: string } | undefined => {
  const certPath = read.given('tls-cert')
  const keyPath = read.given('tls-key')
  if (certPath === undefined && keyPath === undefined) return undefined
  if (certPath === undefined || keyPath === undefined) throw new ConfigError('--tls-cert and --tls-key go together')
  for (const path of [certPath, keyPath])
    if (!existsSync(path)) throw new ConfigError(`--tls-cert and --tls-key must name files; ${path} does not exist`)
  return { certPath, keyPath }
}
