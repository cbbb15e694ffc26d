import { test } from 'tap'
import { fieldsFault, matcherOf, ruleFault, schemaOf } from '../../../src/features/automations/rules.ts'

test('rules match by constants and schemas at paths into the data', (t) => {
  const data = { a: 1, b: { c: 'x', list: [{ d: true }] }, s: { k: [1, 2] } }
  const matches: [object, boolean][] = [
    [{}, true],
    [{ a: 1 }, true],
    [{ a: '1' }, false],
    [{ 'b.c': 'x' }, true],
    [{ 'b.list.0.d': true }, true],
    [{ 'b.missing': null }, false],
    [{ a: 1, 'b.c': 'y' }, false],
    [{ s: [1] }, false],
    [{ 's.k': [1, 2] }, true],
    [{ a: { minimum: 1 } }, true],
    [{ a: { minimum: 2 } }, false],
    [{ 'b.c': { enum: ['x', 'y'] } }, true],
    [{ missing: {} }, false],
    [{ 'b.c': { pattern: '^x.*' } }, true],
    [{ toString: {} }, false],
    [{ 'b.constructor': {} }, false],
    [{ old: { type: 'object' } }, false],
  ]
  for (const [fields, expected] of matches) t.equal(matcherOf(fields as never)(data), expected, JSON.stringify(fields))
  t.same(schemaOf({ g: 'x', n: { minimum: 1 } }), {
    type: 'object',
    properties: { g: { const: 'x' }, n: { minimum: 1 } },
    required: ['g', 'n'],
  })
  t.end()
})

test('fields that could do harm are refused', (t) => {
  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) })
  const bad = [
    { a: { $ref: '#' } },
    { a: { properties: { b: { $dynamicRef: '#x' } } } },
    { a: { $id: 'https://example.com' } },
    { a: { pattern: '(a{1,99}){1,99}' } },
    { a: { pattern: '(?=a)b' } },
    { a: { pattern: '(a)\\1' } },
    { a: { pattern: '[' } },
    { a: { patternProperties: { '.*': {} } } },
    { a: { type: 1 } },
    { a: deep(12) },
    { '': 1 },
    { 'a..b': 1 },
    JSON.parse('{"__proto__.x": 1}'),
    { a: 'x'.repeat(20_000) },
    { a: { pattern: '^(.?){500}$' } },
    { a: { anyOf: Array.from({ length: 30 }, () => ({ pattern: 'x{10}' })) } },
    { a: { allOf: Array.from({ length: 11 }, () => ({ uniqueItems: true })) } },
    { a: { oneOf: Array.from({ length: 300 }, () => ({ minLength: 1 })) } },
    Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, 1])),
  ]
  for (const fields of bad) t.ok(faultOf(fields), JSON.stringify(fields).slice(0, 80))
  const good = [
    { a: 1 },
    { a: { pattern: '^bus-\\d+$' } },
    { a: { pattern: '.*yard.*' } },
    { a: { pattern: '(a+)+$' } },
    { a: { pattern: 'a*a*a*b' } },
    { a: { type: 'string', minLength: 1 } },
    { a: { type: 'array', uniqueItems: true } },
    { a: [1, 2] },
    { a: null },
    { a: { anyOf: [{ const: 1 }, { type: 'null' }] } },
  ]
  for (const fields of good) t.equal(faultOf(fields), undefined, JSON.stringify(fields))
  const long = 'a'.repeat(100_000)
  t.equal(matcherOf({ a: { pattern: 'a' } })({ a: 'a' }), true)
  t.equal(
    matcherOf({ a: { pattern: '(a+)+$' } })({ a: `${long}!` }),
    false,
    'a pattern that explodes elsewhere takes linear time',
  )
  t.end()
})

test('a rule compiles its own schema alone, not the schema of schemas anew', (t) => {
  const { Function: made } = globalThis
  let count = 0
  globalThis.Function = new Proxy(made, {
    construct: (target, given) => {
      count++
      return Reflect.construct(target, given)
    },
  })
  t.teardown(() => {
    globalThis.Function = made
  })
  for (let i = 0; i < 20; i++) t.equal(ruleFault('a', { minLength: i + 1_000 }), undefined)
  t.ok(count >= 20 && count < 60, `${count} functions for 20 rules`)
  t.end()
})

function faultOf(fields: { [key: string]: unknown }): string | undefined {
  return fieldsFault(fields) ?? Object.entries(fields).flatMap(([key, value]) => ruleFault(key, value) ?? [])[0]
}
