import { test } from 'tap'
import {
  lines,
  list,
  objectSchema,
  optional,
  key,
  patchSchema,
  record,
  text,
  withDefault,
} from '../../src/kernel/schema.ts'
import { textFault } from '../../src/kernel/text.ts'
import { compileBody } from '../../src/ingress/schemas.ts'
import { compileCheck } from '../../src/kit/http/validate.ts'

const codesOf = (value: string): string =>
  [...value].map((char) => (char.codePointAt(0) as number).toString(16)).join(' ')

test('what a text may hold', (t) => {
  for (const name of ['a', 'Zażółć', '北京', 'naïve', '🚚', 'x\u200dy', 'a‏b', ' a '])
    t.equal(textFault(name, 'name'), undefined, codesOf(name))
  for (const bad of ['a\u0000', 'a\tb', 'a\nb', 'a\u007f', 'a\u0085b', 'a\u2028b'])
    t.match(textFault(bad, 'name'), /control/, codesOf(bad))
  for (const bad of ['a\u202eb', '\u2066a', 'a\u202a']) t.match(textFault(bad, 'lines'), /bidirectional/, codesOf(bad))
  for (const blank of [' ', '\u00a0', '\u3000', '\u200b', '\ufeff', '\u2800', '\u3164', ' \u200d '])
    t.equal(textFault(blank, 'name'), 'must not be blank', codesOf(blank))
  t.match(textFault('\ud83d', 'name'), /Unicode/)
  t.equal(textFault('a\r\n\tb', 'lines'), undefined)
  t.match(textFault('a\u0007', 'lines'), /control/)
  for (const empty of ['', ' ']) t.equal(textFault(empty, 'line'), undefined)
  t.end()
})

const FIELDS = {
  name: text({ max: 20 }),
  note: optional(lines({ max: 50 })),
  tags: withDefault(list(text({ max: 20 }), { max: 5 }), []),
  code: optional(key({ max: 20 })),
  sizes: optional(record({ schema: { type: 'number' } }, { max: 5 })),
}

test('every field of a body is held to it, with the path, and kept in NFC, at the door and in the kit', (t) => {
  const e = 'e\u0301'
  for (const check of [
    compileBody(objectSchema(FIELDS)),
    compileCheck(objectSchema(FIELDS)),
    compileBody(patchSchema(FIELDS)),
  ]) {
    const body = { name: `Caf${e}`, note: `${e}\n`, tags: [e, 'b'], code: e }
    t.same(check(body), [])
    t.same(body, { name: 'Café', note: 'é\n', tags: ['é', 'b'], code: e }, 'a key stays as it was sent')
    t.same(check({ name: ' ', tags: ['a', 'b\u0000'], note: '\u202e' }), [
      { path: '/name', message: 'must not be blank' },
      { path: '/note', message: 'must not contain bidirectional control characters' },
      { path: '/tags/1', message: 'must not contain control characters or line breaks' },
    ])
    t.match(check({ name: 'a', sizes: { 'b\n': 1 } })[0], { path: '/sizes', message: /control characters/ })
  }
  t.end()
})
