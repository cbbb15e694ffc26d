import { test } from 'tap'
import { FLAGS, help, variableOf } from '../../src/config-flags.ts'
import { readConfig } from '../../src/config.ts'

test('flags win over the environment, and every flag is in the help', async (t) => {
  t.equal(readConfig(['--port', '0'], { WAYMARK_PORT: '9' }).port, 0)
  t.equal(readConfig([], { WAYMARK_PORT: '9' }).port, 9)
  t.same(readConfig(['--webhook-schedule', '1s,2m,3h'], {}).webhookScheduleMs, [1_000, 120_000, 10_800_000])
  for (const { name } of FLAGS) t.ok(help().includes(`--${name} `), name)
  t.equal(variableOf('webhook-allow'), 'WAYMARK_WEBHOOK_ALLOW')
})

test('a variable with _FILE names a file', async (t) => {
  const folder = t.testdir({ token: 'abc\n' })
  t.equal(readConfig([], { WAYMARK_METRICS_TOKEN_FILE: `${folder}/token` }).metricsToken, 'abc')
  t.throws(() => readConfig([], { WAYMARK_METRICS_TOKEN_FILE: `${folder}/none` }), { message: /which does not exist/ })
  t.throws(() => readConfig([], { WAYMARK_METRICS_TOKEN_FILE: folder }), { message: /which cannot be read/ })
})

test('mail goes to a folder of the data folder, unless a server is named', async (t) => {
  t.match(readConfig(['--data', '/srv/w'], {}), { smtpUrl: 'file:/srv/w/mail', mailFrom: 'waymark@localhost' })
  const flags = ['--smtp', 'smtps://a:b@mail.example.com', '--mail-from', 'Fleet <fleet@example.com>']
  t.match(readConfig([...flags, '--public-url', 'https://map.example.com/'], {}), {
    smtpUrl: 'smtps://a:b@mail.example.com',
    mailFrom: 'Fleet <fleet@example.com>',
    publicUrl: 'https://map.example.com',
  })
})

test('an address alone is a range of one', async (t) => {
  const { trustedProxies, webhookAllow } = readConfig(
    ['--trusted-proxies', '10.1.2.3, fd00::/8', '--webhook-allow', '::1'],
    {},
  )
  t.same(trustedProxies, ['10.1.2.3/32', 'fd00::/8'])
  t.same(webhookAllow, ['::1/128'])
})

test('the rollout of geofences is everybody, nobody, or ids of organizations in any case', (t) => {
  const rollout = (text: string) => readConfig(['--geofence-rollout', text], {}).geofenceRollout
  t.equal(readConfig([], {}).geofenceRollout, '*')
  t.same(rollout('none'), [])
  const id = '0190f3a2-7c00-7a11-8b22-aabbccddeeff'
  t.same(rollout(`${id.toUpperCase()}, ${id}`), [id, id])
  t.end()
})

test('sign-up is open on loopback, else for the first alone', async (t) => {
  t.equal(readConfig([], {}).signup, 'open')
  t.equal(readConfig(['--host', '0.0.0.0'], {}).signup, 'first')
  t.equal(readConfig(['--host', '0.0.0.0', '--signup', 'closed'], {}).signup, 'closed')
})

test('what cannot be used names the flag and what was expected', async (t) => {
  const refused: [string[], RegExp][] = [
    [['--port', 'x'], /--port must be a whole number/],
    [['--token-ttl', '5 minutes'], /--token-ttl must be a duration/],
    [['--signup', 'maybe'], /--signup must be one of/],
    [['--role', 'api,cook'], /--role must be one of/],
    [['--tls-cert', '/nowhere'], /go together/],
    [['--nonsense'], /nonsense/],
    [['--token-ttl', '0s'], /--token-ttl must be 1s or more/],
    [['--stale-after', '2h'], /--offline-after must be --stale-after or more/],
    [['--trusted-proxies', 'proxy.example'], /--trusted-proxies .* not "proxy\.example"/],
    [['--trusted-proxies', '10.0.0.0/8/8'], /--trusted-proxies/],
    [['--webhook-allow', '127.0.0.0/8,10.0.0.0/33'], /--webhook-allow .* not "10\.0\.0\.0\/33"/],
    [['--cors-origins', 'https://map.example.com/'], /--cors-origins .* not "https:\/\/map\.example\.com\/"/],
    [['--staff', '@example.com'], /--staff/],
    [['--geofence-rollout', 'nobody'], /--geofence-rollout must be \*, none or ids of organizations, not "nobody"/],
    [['--geofence-rollout', '*,0190f3a2-7c00-7a11-8b22-aabbccddeeff'], /not "\*"/],
    [['--map-style', 'streets.json'], /--map-style must be an address .* not "streets\.json"/],
    [['--map-style', 'https://a:b@tiles.example.com/style.json'], /--map-style/],
    [['--map-origins', 'https://tiles.example.com/'], /--map-origins must be origins/],
    [['--map-origins', '*'], /--map-origins/],
    [['--map-origins', "https://tiles.example.com;script-src 'unsafe-inline'"], /--map-origins/],
    [
      ['--smtp', 'pop3://ada:hunter2@example.com'],
      /^--smtp must be file:<folder>, smtp:\/\/host:port or smtps:\/\/host:port$/,
    ],
    [['--mail-from', 'Ada'], /--mail-from/],
    [['--mail-from', 'a@b.c\nBcc: d@e.f'], /--mail-from/],
    [['--public-url', 'map.example.com'], /--public-url/],
    [['--webhook-schedule', ','], /--webhook-schedule must have at least one/],
  ]
  for (const [args, message] of refused) t.throws(() => readConfig(args, {}), { message })
})

test('each engine is chosen by its URL, in any mix, by flag or variable', async (t) => {
  const urls: [string, string[]][] = [
    ['log', ['lmdb:', 'esdb://a:b@h:2113', 'esdb+discover://a:b@h1:2113,h2:2113?tls=true', 'esdb://h?tls=false']],
    ['tables', ['lmdb:', 'redis://h', 'rediss://u:p@h:6380/2?prefix=a', 'redis://h:26379?sentinel=main']],
    ['history', ['chdb:', 'http://h:8123', 'https://u:p@h/database']],
    ['files', ['file:/srv/files', 'file:files', 's3://bucket', 's3://bucket/a?endpoint=http://h:9000&region=r']],
  ]
  const field = (flag: string) => `${flag}Url` as 'logUrl'
  for (const [flag, given] of urls)
    for (const url of given) {
      t.equal(readConfig([`--${flag}`, url], {})[field(flag)], url)
      t.equal(readConfig([], { [variableOf(flag)]: url })[field(flag)], url)
    }
  const refused: [string, string, RegExp][] = [
    ['log', 'kafka://h:9092', /--log kafka:\/\/h:9092 names no engine that Waymark has; it must be lmdb:, esdb:/],
    ['log', 'lmdb:/srv', /names no engine/],
    ['log', 'esdb://', /names no host/],
    ['log', 'esdb://a:b@h:port', /--log esdb:\/\/\*\*\*@h:port cannot be read as a URL/],
    ['log', 'esdb+discover://h1:2113,:2113', /cannot be read/],
    ['log', 'http://h:2113', /names no engine/],
    ['tables', 'memcached://h', /--tables .* names no engine .* redis:\/\/host/],
    ['tables', 'redis://', /names no host/],
    ['tables', 'redis://u:pa/ss@h:6379', /--tables redis:\/\/\*\*\*@h:6379 /],
    ['tables', 'redis://h:99999', /cannot be read/],
    ['history', 'clickhouse://u:secret@h:9000', /--history clickhouse:\/\/\*\*\*@h:9000 names no engine/],
    ['history', 'http://', /names no host/],
    ['history', 'http://h:x?password=secret', /cannot be read/],
    ['files', 's3:bucket', /--files s3:bucket names no engine/],
    ['files', 's3://', /names no host/],
    ['files', 'file:', /names no folder/],
    ['files', 'ftp://h', /names no engine/],
  ]
  for (const [flag, url, message] of refused) {
    t.throws(() => readConfig([`--${flag}`, url], {}), { message }, url)
    const error = await Promise.resolve()
      .then(() => readConfig([], { [variableOf(flag)]: url }))
      .then(() => '', String)
    t.match(error, message, `${url} in the environment`)
    t.notMatch(error, /secret|pa\/ss|:b@/)
  }
})
