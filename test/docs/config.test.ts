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
  ]
  for (const [args, message] of refused) t.throws(() => readConfig(args, {}), { message })
})
