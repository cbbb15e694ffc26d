import { test } from 'tap'
import { anyObject, key, lines, newName, object, text, timeOfDay } from '../../../src/kernel/schema.ts'
import { compileCheck } from '../../../src/kit/http/validate.ts'

test('what a validator says is told in words of people', async (t) => {
  const said = (schema: object, value: unknown): string[] =>
    compileCheck(schema as never)(value).map(({ message }) => message)
  for (const [schema, value, message] of [
    [{ type: 'string', minLength: 3 }, 'ab', 'must have at least 3 characters'],
    [{ type: 'string', maxLength: 1 }, 'ab', 'must have at most 1 character'],
    [{ type: 'array', minItems: 1 }, [], 'must have at least 1 entry'],
    [{ type: 'array', maxItems: 2 }, [1, 2, 3], 'must have at most 2 entries'],
    [{ type: 'object', maxProperties: 1 }, { a: 1, b: 2 }, 'must have at most 1 field'],
    [
      { type: 'array', uniqueItems: true },
      ['a', 'b', 'a'],
      'must not have the same entry twice: those at 0 and 2 are equal',
    ],
    [{ type: 'string' }, 5, 'must be a text'],
    [{ type: 'integer' }, 'x', 'must be a whole number'],
    [{ type: ['string', 'null'] }, 5, 'must be a text or null'],
    [{ type: 'string', format: 'uuid' }, 'x', 'must be an id, such as 0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'],
    [
      { type: 'string', format: 'date-time' },
      'x',
      'must be a time in RFC 3339, such as 2026-11-20T08:00:00Z, or epoch milliseconds',
    ],
    [{ type: 'string', pattern: '^[a-z]+$' }, 'X', 'must have the form ^[a-z]+$'],
    [{ type: 'string', pattern: 'constructor' }, 'X', 'must have the form constructor'],
    [timeOfDay().schema, '25:00', 'must be a time of day, such as 07:30'],
    [{ type: 'number', maximum: 90 }, 91, 'must be <= 90'],
    [{ enum: ['a', 'b'] }, 'c', 'must be one of a, b'],
  ] as const)
    t.same(said(schema, value), [message])
  t.notMatch(JSON.stringify(said({ anyOf: [{ type: 'string' }, { minimum: 3 }] }, 1)), /must NOT|schema/)
})

test('characters of a text are counted as it is kept', async (t) => {
  const [decomposed, growing] = ['e\u0301', '\u0958']
  for (const field of [text({ max: 2 }), newName({ max: 2 }), lines({ max: 2 })]) {
    const faults = compileCheck(object({ field }).schema)
    const sent = { field: decomposed.repeat(2) }
    t.same(faults(sent), [])
    t.equal(sent.field, 'éé')
    t.match(faults({ field: growing.repeat(2) }), [{ path: '/field', message: 'must have at most 2 characters' }])
  }
  t.match(compileCheck(key({ max: 2 }).schema)(decomposed.repeat(2)), [{ message: 'must have at most 2 characters' }])
})

test('an object of any content has no number that would be kept as null', async (t) => {
  const faults = compileCheck(object({ settings: anyObject() }).schema)
  t.same(faults({ settings: { a: [1e308, -1e308, null] } }), [])
  t.same(faults(JSON.parse('{"settings": {"a/b": [{"c": -1e400}]}}')), [
    { path: '/settings/a~1b/0/c', message: 'must be a number within 1.8e308' },
  ])
})
