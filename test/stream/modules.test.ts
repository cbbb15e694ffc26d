import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { startService } from '../support/service.ts'

/** Dependencies that every start needs, because they open its engines, its routes, or serve the first request. */
const NEEDED = [
  '@fastify/busboy',
  '@node-rs/argon2',
  'ajv',
  'ajv-formats',
  'chdb',
  'fast-jwt',
  'find-my-way',
  'ipaddr.js',
  'lmdb',
  'msgpackr',
  'mustache',
  'pino',
  'prom-client',
  'rbush',
  're2js',
  'robust-predicates',
  'rrule-temporal',
  'tweetnacl',
  'uuid',
]

/** Files of JavaScript that any thread of the service loaded, as Node's coverage names them. */
const loadedFiles = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] }
    return result.map(({ url }) => url)
  })

test('a start loads no library that only some requests, formats or engines need', { timeout: 600_000 }, async (t) => {
  const folder = folderOf(t)
  const coverage = join(folder, 'coverage')
  const service = await startService(join(folder, 'data'), [], 0, undefined, undefined, { NODE_V8_COVERAGE: coverage })
  t.teardown(() => service.kill())
  t.equal(await service.stop(), 0)
  const files = loadedFiles(coverage)
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object }
  const loaded = Object.keys(dependencies).filter((name) => files.some((url) => url.includes(`/node_modules/${name}/`)))
  t.strictSame(loaded.sort(), NEEDED.toSorted(), 'load others with `await import` where they are first needed')
})
