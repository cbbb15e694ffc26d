import { test } from 'tap'
import { FLAGS, help, readConfig, variableOf } from '../../src/config.ts'

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
