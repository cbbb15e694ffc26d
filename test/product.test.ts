import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { LIMITS } from '../src/config-limits.ts'
import { RECORDS } from '../src/features/data/views.ts'
import { ORGANIZATIONS_TABLE } from '../src/features/identity/views.ts'
import { pathsOf } from '../src/kit/resource/answers.ts'
import type { ResourceServices } from '../src/kit/resource/declaration.ts'
import { resourceRoutes } from '../src/kit/resource/routes.ts'
import { FEATURES } from '../src/product.ts'

/** Routes are declared without them. */
const NO_SERVICES = {} as ResourceServices

const ROOT = join(import.meta.dirname, '../..')
const IMPORTS_MAX = 30
const FEATURE = /^src\/features\/[^/]+\/feature\.ts$/

const filesBelow = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))

const importsOf = (file: string): string[] =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^(?:import|\} from|export .* from) .*?'([^']+)'/gm)].map(
    ([, from]) => from,
  )

test('each folder of src/features is one entry of the list, and only the list names it', async (t) => {
  const folders = readdirSync(join(ROOT, 'src/features'))
  t.equal(FEATURES.length, folders.length, 'the list has every folder')
  t.equal(new Set(FEATURES).size, FEATURES.length, 'each once')
  const listed = importsOf('src/product.ts').filter((from) => from.endsWith('/feature.ts'))
  t.same(
    listed.filter((from) => from !== './feature.ts').sort(),
    folders.map((one) => `./features/${one}/feature.ts`),
  )
  const files = [...filesBelow('src'), ...filesBelow('projections')]
  t.ok(files.length > folders.length, 'the walk found the source')
  for (const file of files) {
    if (file === 'src/product.ts') continue
    const named = importsOf(file).filter((from) => FEATURE.test(join(dirname(file), from)))
    t.same(named, [], `${file} names no feature as a whole`)
  }
})

test('no role has more imports than fit on a screen', async (t) => {
  const files = filesBelow('src/roles')
  t.ok(files.length > 5, 'the walk found the roles')
  for (const file of files) t.ok(importsOf(file).length <= IMPORTS_MAX, `${file}: ${importsOf(file).length} imports`)
})

test('what customers make has a limit for each organization', async (t) => {
  const made = FEATURES.flatMap(({ resources = [] }) => resources).filter(
    ({ declaration: { plural, verbs = ['create'] } }) => plural !== ORGANIZATIONS_TABLE && verbs.includes('create'),
  )
  t.ok(made.length > 15, 'the walk found the resources')
  const bounded = new Set<string>([...LIMITS.map(({ name }) => name), RECORDS])
  t.same(
    made.map(({ declaration }) => declaration.plural).filter((plural) => !bounded.has(plural)),
    [],
    'each is in LIMITS, or nothing ends its growth',
  )
})

test('the example of each change can be sent: it names nothing that a create sets for good', async (t) => {
  for (const { declaration } of FEATURES.flatMap(({ resources = [] }) => resources)) {
    const { one } = pathsOf(declaration)
    const id = `{${declaration.noun}Id}`
    for (const route of resourceRoutes(declaration, NO_SERVICES))
      if (route.method === 'PUT' || route.method === 'PATCH')
        t.same(
          Object.keys(route.bodyExample as object).filter((name) => declaration.fixed?.includes(name)),
          [],
          `${route.method} ${one}/${id}`,
        )
  }
})
