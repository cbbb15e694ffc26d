import { parseArgs } from 'node:util'
import { booleanOf, ConfigError, durationMs, fromEnvironment } from './config-values.ts'
import { LIMITS } from './config-limits.ts'

export const ROLES = ['api', 'ingress', 'devices', 'projector', 'matcher', 'dispatcher', 'live', 'jobs'] as const
export type Role = (typeof ROLES)[number]

interface Flag {
  name: string
  /** As shown in the help; empty: none. */
  default: string
  meaning: string
  boolean?: boolean
}

/** The one table of flags: help, environment and docs/operations.md are made from it. */
export const FLAGS: readonly Flag[] = [
  { name: 'host', default: '127.0.0.1', meaning: 'address to listen on, for HTTP and WebSocket' },
  { name: 'port', default: '8080', meaning: 'port to listen on; 0 picks a free one' },
  { name: 'data', default: './data', meaning: 'folder for the embedded engines, keys and uploaded files' },
  { name: 'log', default: 'lmdb:', meaning: 'URL of the event log engine' },
  { name: 'tables', default: 'lmdb:', meaning: 'URL of the engine for tables' },
  { name: 'history', default: 'chdb:', meaning: 'URL of the location history engine' },
  {
    name: 'files',
    default: 'file:<data>/files',
    meaning: 'where uploads and generated files are stored; use s3://bucket/prefix when several machines share them',
  },
  {
    name: 'keys',
    default: '<data>/keys.json',
    meaning: 'keyring file, created at the first start; must be the same on every node',
  },
  { name: 'partitions', default: '16', meaning: 'number of partitions of the location log; fixed once the log exists' },
  { name: 'role', default: ROLES.join(','), meaning: 'roles of this process, comma-separated' },
  {
    name: 'demo',
    default: 'off',
    meaning: 'creates a demo organization and replays the shipped trace as if it were happening now',
    boolean: true,
  },
  {
    name: 'demo-login-public',
    default: 'off',
    meaning:
      "shows the demo owner's password on the page to everyone, not only to this machine, and logs it whatever --host is",
    boolean: true,
  },
  {
    name: 'signup',
    default: 'open on loopback, else first',
    meaning: 'who may sign up: open, first (only while there is no organization) or closed',
  },
  { name: 'signups-per-address', default: '10', meaning: 'sign-ups per hour allowed from one client address' },
  { name: 'organizations-per-user', default: '20', meaning: 'most organizations that one person may create' },
  { name: 'token-ttl', default: '24h', meaning: 'how long an access token is valid' },
  { name: 'tls-cert', default: '', meaning: 'certificate file (PEM); enables https and wss' },
  { name: 'tls-key', default: '', meaning: 'private key file (PEM) of the certificate' },
  { name: 'trusted-proxies', default: '', meaning: 'proxies (CIDR list) whose X-Forwarded-For is trusted' },
  { name: 'cors-origins', default: '', meaning: 'origins that browsers may call from, comma-separated' },
  { name: 'addon-origin', default: '', meaning: 'separate origin for add-on files, served by this service' },
  { name: 'map', default: '', meaning: 'PMTiles archive of streets that maps show' },
  { name: 'map-style', default: '', meaning: 'address of a MapLibre style that maps show in place of the shipped one' },
  { name: 'map-origins', default: '', meaning: 'origins that this style loads tiles, fonts and images from' },
  { name: 'metrics-token', default: '', meaning: 'bearer token that /metrics requires; without it, loopback only' },
  { name: 'stale-after', default: '5m', meaning: 'age of the last point after which a tracker is stale' },
  { name: 'offline-after', default: '1h', meaning: 'age of the last point after which a tracker is offline' },
  { name: 'webhook-allow', default: '', meaning: 'private addresses (CIDR list) that webhooks may call' },
  { name: 'geofence-rollout', default: '*', meaning: 'ids of organizations that may use geofences, *, or none' },
  {
    name: 'staff',
    default: '',
    meaning: 'e-mail domains whose users (with a verified address) may use geofences in any organization',
  },
  {
    name: 'smtp',
    default: 'file:<data>/mail',
    meaning: 'where to send mail: a folder, or smtp(s)://user:password@host:port',
  },
  { name: 'mail-from', default: 'waymark@localhost', meaning: 'sender address of mails' },
  {
    name: 'public-url',
    default: '',
    meaning: 'base URL for links in mails; by default, the address that the service listens on',
  },
  { name: 'rate-limit-token', default: '', meaning: 'requests per second allowed for one token' },
  { name: 'rate-limit-org', default: '', meaning: 'requests per second allowed for one organization' },
  { name: 'rate-limit-address', default: '', meaning: 'requests per second allowed for one client address' },
  ...LIMITS.map(({ flag, default: most, meaning }) => ({ name: flag, default: most, meaning })),
  { name: 'file-bytes-max', default: '20MiB', meaning: 'largest file that may be attached to a task or record' },
  { name: 'osrm', default: '', meaning: 'OSRM server for the roads of routes, http(s)://host:port' },
  { name: 'import-bytes-max', default: '50MiB', meaning: 'largest file that may be imported' },
  { name: 'offline-max', default: '7d', meaning: 'how late what was done on a task without a connection is taken' },
  { name: 'trip-stop', default: '5m', meaning: 'length of a stop that ends a detected trip' },
  { name: 'trip-gap', default: '30m', meaning: 'silence that ends a detected trip' },
  { name: 'location-history-days', default: '365', meaning: 'days to keep points, transitions and trips' },
  { name: 'location-log-days', default: '7', meaning: 'days to keep points in the location log once stored' },
  { name: 'automation-log-days', default: '30', meaning: 'days to keep automation runs and large back-tests' },
  { name: 'automation-max-age', default: '24h', meaning: 'automations skip events older than this when logged' },
  { name: 'org-points-per-second', default: '', meaning: 'points per second accepted from one organization' },
  {
    name: 'devices',
    default: '',
    meaning:
      'ports for hardware trackers over TCP and UDP, such as teltonika:5027,gt06:5023,h02:5013,queclink:5004,tk103:5002',
  },
  { name: 'devices-key', default: '', meaning: 'ingest key that hardware trackers come under' },
  { name: 'devices-allow', default: '', meaning: 'addresses (CIDR list) that hardware trackers may connect from' },
  {
    name: 'mqtt',
    default: '',
    meaning: 'MQTT broker to take points from, mqtt(s)://user:password@host:port (better: WAYMARK_MQTT_FILE)',
  },
  { name: 'mqtt-key', default: '', meaning: 'ingest key that points from the broker come under' },
  { name: 'webhook-schedule', default: '5s,5m,30m,2h,5h,10h,10h', meaning: 'delays before the retries of a webhook' },
]

/** Name of the environment variable of a flag: `webhook-allow` is WAYMARK_WEBHOOK_ALLOW. */
export const variableOf = (flag: string): string => `WAYMARK_${flag.toUpperCase().replaceAll('-', '_')}`

export const help = (): string => {
  const rows = FLAGS.map((flag) => [`--${flag.name}`, flag.default || 'none', flag.meaning])
  const widths = [0, 1].map((column) => Math.min(32, Math.max(...rows.map((row) => row[column].length))))
  const lines = rows.map((row) => `  ${row[0].padEnd(widths[0])}  ${row[1].padEnd(widths[1])}  ${row[2]}`)
  return `Each flag has an environment variable (--webhook-allow is WAYMARK_WEBHOOK_ALLOW; with _FILE the name of a file that holds it); flags win.\n\n${lines.join('\n')}\n`
}

const readFlags = (args: readonly string[]): { [flag: string]: string | boolean | undefined } => {
  const options = Object.fromEntries(
    FLAGS.map((flag) => [flag.name, { type: flag.boolean ? 'boolean' : 'string' } as const]),
  )
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new ConfigError((error as Error).message.split('\n')[0])
  }
}

/** Values of flags and environment, each by its kind. @throws ConfigError for an unknown flag */
export const flagReader = (args: readonly string[], environment: NodeJS.ProcessEnv) => {
  const flags = readFlags(args)
  const given = (name: string): string | undefined => {
    const flag = flags[name]
    // As "$LOG" where LOG is not set: the default would be another installation.
    if (flag === '' && defaultOf(name) !== '')
      throw new ConfigError(`--${name} is empty; leave it out for ${defaultOf(name)}`)
    const text = flag !== undefined ? String(flag) : fromEnvironment(variableOf(name), environment)
    return text === undefined || text === '' ? undefined : text
  }
  const text = (name: string): string => given(name) ?? defaultOf(name)
  const integer = (name: string, min: number, max: number): number => {
    const value = Number(text(name))
    if (!Number.isInteger(value) || value < min || value > max)
      throw new ConfigError(`--${name} must be a whole number from ${min} to ${max}, not "${text(name)}"`)
    return value
  }
  return {
    given,
    text,
    integer,
    optionalNumber: (name: string) => (given(name) === undefined ? undefined : integer(name, 1, 1_000_000_000)),
    boolean: (name: string) => booleanOf(name, text(name)),
    duration: (name: string) => durationMs(name, text(name)),
    list: (name: string) =>
      text(name)
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    oneOf: <Value extends string>(name: string, value: string, values: readonly Value[]): Value => {
      if (!(values as readonly string[]).includes(value))
        throw new ConfigError(`--${name} must be one of ${values.join(', ')}, not "${value}"`)
      return value as Value
    },
  }
}

export type FlagReader = ReturnType<typeof flagReader>

const defaultOf = (name: string): string => FLAGS.find((flag) => flag.name === name)?.default ?? ''
