import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { LIMITS } from '../../src/config-limits.ts'
import { FLAGS } from '../../src/config-flags.ts'
import { readConfig } from '../../src/config.ts'

/** Every flag that the service has or will have, with its default (empty: none), as its documents promise them. */
const PROMISED: { [flag: string]: string } = {
  host: '127.0.0.1',
  port: '8080',
  data: './data',
  log: 'lmdb:',
  tables: 'lmdb:',
  history: 'chdb:',
  files: 'file:<data>/files',
  keys: '<data>/keys.json',
  partitions: '16',
  role: 'api,ingress,devices,projector,matcher,dispatcher,live,jobs',
  demo: 'off',
  'demo-login-public': 'off',
  signup: 'open on loopback, else first',
  'signups-per-address': '10',
  'organizations-per-user': '20',
  'token-ttl': '24h',
  'tls-cert': '',
  'tls-key': '',
  'trusted-proxies': '',
  'cors-origins': '',
  'metrics-token': '',
  'stale-after': '5m',
  'offline-after': '1h',
  'webhook-allow': '',
  'geofence-rollout': '*',
  staff: '',
  smtp: 'file:<data>/mail',
  'mail-from': 'waymark@localhost',
  'public-url': '',
  'rate-limit-token': '',
  'rate-limit-org': '',
  'rate-limit-address': '',
  'trackers-max': '100000',
  'geofences-max': '100000',
  'geofence-positions-max': '2000000',
  'geofence-groups-max': '100000',
  'automations-max': '1000',
  'tasks-max': '100000',
  'schedules-max': '50000',
  'routing-results-max': '100000',
  'flows-max': '100000',
  'data-types-max': '100000',
  'records-max': '10000000',
  'files-bytes-max': '100GiB',
  'users-max': '100000',
  'shares-max': '10000',
  'service-accounts-max': '100000',
  'export-configs-max': '100000',
  'roles-max': '100000',
  'hubs-max': '100000',
  'teams-max': '100000',
  'vehicles-max': '100000',
  'ingest-keys-max': '100000',
  'app-integrations-max': '100000',
  'plugin-settings-max': '100000',
  'addons-max': '100000',
  'trip-stop': '5m',
  'trip-gap': '30m',
  'location-history-days': '365',
  'location-log-days': '7',
  'automation-log-days': '30',
  'automation-max-age': '24h',
  'org-points-per-second': '',
  'webhook-schedule': '5s,5m,30m,2h,5h,10h,10h',
  devices: '',
  'devices-key': '',
  'devices-allow': '',
  mqtt: '',
  'mqtt-key': '',
  'offline-max': '7d',
  osrm: '',
  'addon-origin': '',
  map: '',
  'map-style': '',
  'map-origins': '',
  'import-bytes-max': '50MiB',
  'file-bytes-max': '20MiB',
}

test('each flag is a promised one with the promised default; what is not built yet is no flag', async (t) => {
  for (const { name, default: value } of FLAGS) t.equal(value, PROMISED[name], `--${name}`)
})

test('a flag with a default is not empty; a variable that is empty counts as not set', async (t) => {
  t.throws(() => readConfig(['--log', ''], {}), { message: '--log is empty; leave it out for lmdb:' })
  t.throws(() => readConfig(['--files='], {}), { message: /^--files is empty/ })
  t.equal(readConfig(['--webhook-allow', ''], { WAYMARK_LOG: '' }).logUrl, 'lmdb:')
})

test('the service reads every setting', async (t) => {
  const files = execFileSync('git', ['ls-files', 'src'], { encoding: 'utf8' }).trim().split('\n')
  const code = files
    .filter((file) => file.endsWith('.ts') && !/^src\/config(-values)?\.ts$/.test(file))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
  const settings = Object.keys(readConfig([], {}))
  t.ok(settings.length >= FLAGS.length - LIMITS.length, 'each flag is a setting; those of TLS are one, and the limits')
  for (const name of settings) t.match(code, new RegExp(`(config\\.|[{,] ?|'|^\\s*)${name}\\b`, 'm'), name)
})
