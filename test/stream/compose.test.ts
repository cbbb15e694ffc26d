import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { ROLES } from '../../src/config-flags.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { type ClickhouseFront, openClickhouseFront } from '../support/clickhouse/front.ts'
import { composeOf, exampleVariables, roleEnvironments } from '../support/compose-file.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { ask, call, signUp, until } from '../support/service.ts'

const hasCompose = spawnSync('docker-compose', ['version']).status === 0
/** Whether a process may be given a file system of its own: by root alone. */
const hasNamespaces = process.platform === 'linux' && spawnSync('unshare', ['-m', 'true']).status === 0

const variables = exampleVariables

test('docker-compose.yml is what docker-compose understands, with and without .env', {
  skip: hasCompose ? false : 'docker-compose is not installed (apt-get install docker-compose)',
}, async (t) => {
  const none = join(folderOf(t), 'none')
  writeFileSync(none, '')
  for (const [args, given] of [
    [['--env-file', '.env.example'], variables],
    [['--env-file', none], {}],
  ] as const) {
    const { status, stdout, stderr } = spawnSync('docker-compose', [...args, 'config'], { encoding: 'utf8' })
    t.equal(status, 0, stderr)
    const { services } = parse(stdout)
    const expected = composeOf(given).services
    t.same(Object.keys(services).sort(), Object.keys(expected).sort())
    for (const [name, { environment }] of Object.entries<{ environment: object }>(services))
      t.same(environment, expected[name].environment, `the environment of ${name}`)
  }
})

test('docker-compose.yml keeps each container in its bounds', async (t) => {
  const { services, networks } = composeOf(variables)
  const { waymark } = services
  const engines = Object.fromEntries(
    Object.entries<Record<string, unknown>>(services).filter(
      ([name, { profiles }]) => name !== 'waymark' && profiles === undefined,
    ),
  )
  t.match(waymark, { read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
  t.same(Object.keys(waymark.depends_on).sort(), Object.keys(engines).sort(), 'it waits for every engine')
  t.ok(waymark.ports.every((port: string) => port.startsWith('127.0.0.1:')))
  t.equal(networks.engines.internal, true)
  for (const [name, engine] of Object.entries(engines)) {
    t.same(engine.networks, ['engines'], `${name} is on the inner network alone`)
    t.equal(engine.ports, undefined, `${name} is not published`)
    t.match(engine.image, /:\d+\.\d+\.\d+/, `${name} is pinned`)
    t.ok(engine.healthcheck && engine.mem_limit && engine.pids_limit && engine.volumes, `${name} has health and limits`)
  }
  for (const [name, service] of Object.entries<Record<string, unknown>>(services)) {
    t.ok(service.mem_limit && service.pids_limit && service.logging, `${name} has limits`)
    t.match(service.security_opt, ['no-new-privileges:true'], name)
    for (const port of (service.ports ?? []) as string[]) t.match(port, /^127\.0\.0\.1:/, `${name} is for this machine`)
    if (service.profiles !== undefined && service.build === undefined)
      t.match(service.image, /:(v?\d+\.\d+\.\d+|RELEASE\.\d{4}-)/, `${name} is pinned`)
  }
})

test('the profile `roles` has each role once, and ingress and live twice, with all that they share', async (t) => {
  const environments = Object.values(roleEnvironments())
  const roles = environments.flatMap(({ WAYMARK_ROLE }) => WAYMARK_ROLE.split(',')).sort()
  t.same(roles, [...ROLES, 'devices', 'ingress', 'live'].sort())
  const [first] = environments
  for (const { WAYMARK_ROLE, ...shared } of environments) {
    const { WAYMARK_ROLE: _, ...expected } = first
    t.same(shared, expected, `${WAYMARK_ROLE} shares engines, keyring and files with the others`)
  }
  t.match(first, { WAYMARK_FILES: /^s3:/, WAYMARK_KEYS: '/keys/keys.json' })
  const { services } = composeOf(variables)
  for (const name of Object.keys(roleEnvironments())) {
    t.match(services[name], { read_only: true, cap_drop: ['ALL'], volumes: ['keys:/keys'], ports: undefined }, name)
    t.ok(services.haproxy.depends_on.includes(name), `haproxy starts ${name}`)
  }
})

test('the files for the ClickHouse server are XML with settings that the engine knows', async (t) => {
  const users = readFileSync('deploy/clickhouse/users.xml', 'utf8')
  const settings = [...users.split('<default>')[1].matchAll(/<(\w+)>(\d+)</g)].map(([, name, value]) => ({
    name,
    value,
  }))
  t.ok(settings.some(({ name, value }) => name === 'async_insert' && value === '0'))
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const names = settings.map(({ name }) => name)
  const known = await history.rows<{ name: string }>(
    'SELECT name FROM system.settings WHERE name IN {names:Array(String)}',
    {
      names,
    },
  )
  t.same(known.map(({ name }) => name).sort(), names.sort())
  await history.close()
  t.match(readFileSync('deploy/clickhouse/config.xml', 'utf8'), /^<!--[\s\S]*-->\n<clickhouse>[\s\S]*<\/clickhouse>\n$/)
})

interface Engines {
  /** Of what docker-compose.yml calls `host:port`. */
  addresses: { [address: string]: string }
  front: ClickhouseFront
}

/** The engines of the tests, Redis with the very options and the password of docker-compose.yml. */
const openEngines = async (t: Test, folder: string, services: ReturnType<typeof composeOf>): Promise<Engines> => {
  const log = await openEventstoredbServer({ path: join(folder, 'log') })
  const [, command] = /exec docker-entrypoint\.sh redis-server (.*)/s.exec(
    services.redis.command.at(-1),
  ) as unknown as [string, string]
  const options = command.replace('"$$REDIS_PASSWORD"', services.redis.environment.REDIS_PASSWORD).trim().split(/\s+/)
  mkdirSync(join(folder, 'redis'))
  const redis = await openRedisServer(join(folder, 'redis'), options)
  const store = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
  const front = await openClickhouseFront({ store })
  t.teardown(async () => {
    await Promise.all([log.close(), redis.kill(), front.close()])
    await store.close()
  })
  const addresses = {
    'eventstore:2113': new URL(log.url.replace('esdb:', 'http:')).host,
    'redis:6379': new URL(redis.url).host,
    'clickhouse:8123': new URL(front.url).host,
  }
  return { addresses, front }
}

/** Everything read-only but the data and `/tmp`, another user, no capability: as the container of docker-compose.yml. */
const CONTAINED = `
mount --make-rprivate /
for folder in "$DATA" "$TMPDIR"; do mount --bind "$folder" "$folder"; done
mount -o remount,bind,ro "$(findmnt -n -o TARGET --target .)"
mount -o remount,bind,ro /
if touch "$PWD/written" 2>/dev/null; then echo "it can be written" >&2; exit 3; fi
other="--reuid=65534 --regid=65534 --clear-groups"
setpriv $other test -r "$PWD/dist/src/main.js" || { echo "as its owner: others may not read this folder" >&2; other=; }
exec setpriv $other --no-new-privs --bounding-set=-all "$@"`

test('the service starts with exactly the environment of docker-compose.yml on the engines, contained as there', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const { services } = composeOf(variables)
  const { addresses, front } = await openEngines(t, folder, services)
  const data = resolve(folder, 'service')
  mkdirSync(data)
  const temporary = mkdtempSync(join(tmpdir(), 'waymark-'))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  for (const path of [data, temporary]) chmodSync(path, 0o777)
  chmodSync(folder, 0o711) // the other user has to get through it
  const own = { WAYMARK_HOST: '127.0.0.1', WAYMARK_PORT: '0', WAYMARK_DATA: data }
  const ofCompose = Object.fromEntries(
    Object.entries<string>(services.waymark.environment).map(([name, value]) => {
      const [address] = Object.keys(addresses).filter((candidate) => value.includes(candidate))
      return [name, address === undefined ? value : value.replace(address, addresses[address])]
    }),
  )
  const command = [process.execPath, 'dist/src/main.js', 'start']
  const contained = ['unshare', '-m', 'sh', '-ec', CONTAINED, 'sh', ...command]
  if (!hasNamespaces) t.comment('not contained: this needs root on Linux')
  const [program, ...args] = hasNamespaces ? contained : command
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, DATA: data, TMPDIR: temporary, ...ofCompose, ...own },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => void child.kill('SIGKILL'))
  const exited = new Promise((done) => child.once('exit', done))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  const listening = () => lines.find((line) => line.includes('"listening"'))
  await until('the service', () => listening() !== undefined || child.exitCode !== null)
  const service = { url: JSON.parse(listening() ?? '{}').url as string }
  await until('ready', async () => (await call(service, 'GET', '//readyz')).status === 200)

  const { token } = await signUp(service)
  await ask(service, 'GET', '/trackers', { token })
  await t.rejects(signUp(service), 'sign-up is for the first alone')
  const credentials = Buffer.from(`waymark:${variables.CLICKHOUSE_PASSWORD}`).toString('base64')
  t.equal(front.requests.at(-1)?.authorization, `Basic ${credentials}`)
  t.equal(front.requests.at(-1)?.settings.database, 'waymark')
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})
