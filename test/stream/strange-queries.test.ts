import { test } from 'tap'
import { openApiWorld } from '../support/api-world.ts'
import { addressOf, bodyOf, headersOf, LEADS_ELSEWHERE, queryOf } from '../support/each-route.ts'
import { operationsOf } from '../support/open-api.ts'
import { call, startService } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

// biome-ignore lint/suspicious/noExplicitAny: schemas of any parameter
type Json = any

const NUMBERS = [
  '',
  ' ',
  ' 5',
  '5 ',
  '+5',
  '0x10',
  '0b1',
  '0o7',
  '5.',
  '.5',
  '5_0',
  '5n',
  'NaN',
  'Infinity',
  '-',
  '٥',
  'x',
  '1,2',
  '1e999',
  '9'.repeat(400),
]
const WHOLE = [...NUMBERS, '1e1', '1.5', '1.0']
const TIMES = [
  'x',
  '',
  ' ',
  '2026-13-01T00:00:00Z',
  '2026-02-30T00:00:00Z',
  '2026-01-01',
  '0x10',
  '1e12',
  '9'.repeat(30),
  '2026-01-01T00:00:00Z,2026-01-02T00:00:00Z',
]
const BOXES = [
  '',
  '1,2,3',
  '1,2,3,4,5',
  '0x1,2,3,4',
  ' 1,2,3,4',
  '+1,2,3,4',
  '1,2,3,',
  '181,0,182,1',
  '-540,0,540,1',
  '0,-91,1,1',
  '0,0,1,91',
  '0,2,1,1',
  'a,b,c,d',
  'NaN,0,1,1',
  '0,0,Infinity,1',
]
const CURSORS = ['x', '', '%00', '0', 'e30', 'bnVsbA', 'W10', 'x'.repeat(5_000)]

/** Values that a parameter must refuse, by its schema and its name. */
const strangeFor = (name: string, schema: Json): string[] => {
  if (schema.anyOf !== undefined) return strangeFor(name, schema.anyOf[0])
  const one = schema.type === 'array' ? schema.items : schema
  if (one.type === 'integer') return WHOLE
  if (one.type === 'number') return NUMBERS
  if (one.type === 'boolean') return ['', 'yes', '1', 'TRUE', 'true ']
  if (one.enum !== undefined) return ['', 'nonsense', `${one.enum[0]} `, '__proto__']
  if (one.format === 'time-zone') return ['', 'Nowhere', '../Warsaw', 'x'.repeat(100)]
  if (one.format === 'uuid') return ['', 'x', '0190f3a2', '%00', '../../etc']
  if (one.format === 'date-time' || ['from', 'to', 'finishedFrom', 'finishedTo'].includes(name)) return TIMES
  if (name === 'bbox') return BOXES
  if (name === 'near') return ['', '1', '1,2,3', '0x1,2', ' 1,2', '91,0', '0,181', '+1,2', 'x,y']
  if (name === 'cursor') return CURSORS
  if (name === 'sortBy' || name === 'fields') return ['', 'nonsense', '__proto__', 'constructor', ',']
  return []
}

test('a value that a parameter does not take is 400 that names it, on every route', { timeout: 900_000 }, async (t) => {
  const service = await startService(
    folderOf(t),
    ['--webhook-schedule', '20ms'],
    0,
    'dist/test/support/few-points-child.js',
  )
  t.teardown(() => service.kill())
  const document = (await call(service, 'GET', '//openapi.json')).json
  const world = await openApiWorld(service)
  const resolve = (schema: Json): Json =>
    schema.$ref
      ? schema.$ref
          .slice(2)
          .split('/')
          .reduce((at: Json, name: string) => at[name], document)
      : schema
  let tried = 0
  for (const operation of operationsOf(document)) {
    if (operation.isRoot || LEADS_ELSEWHERE.includes(operation.operationId)) continue
    for (const { name, schema, in: place } of operation.parameters) {
      if (place !== 'query') continue
      const values = strangeFor(name, resolve(schema))
      for (const value of values) {
        tried++
        const others = new URLSearchParams(queryOf(operation, world))
        others.delete(name)
        const query = [others.toString(), `${name}=${value.includes('%') ? value : encodeURIComponent(value)}`]
          .filter(Boolean)
          .join('&')
        const { status, json, text } = await call(service, operation.method, addressOf(operation, world.ids, query), {
          token: world.token,
          body: bodyOf(operation, world),
          headers: headersOf(operation),
        })
        const isNamed =
          status === 400 && json?.code === 'invalid' && json.errors?.some(({ path }: Json) => path === `/${name}`)
        if (!isNamed) t.fail(`${operation.operationId} ${name}=${value.slice(0, 60)}: ${status} ${text.slice(0, 120)}`)
      }
    }
  }
  t.comment(`${tried} tried`)
})
