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
import { withoutInvisible } from '../../src/kernel/invisible.ts'
import { normalized, textFault } from '../../src/kernel/text.ts'
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

test('a new name has no character that nobody sees, but where a script or an emoji needs it', (t) => {
  const needed = [
    ['Persian', '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'],
    ['Persian with a vowel sign', '\u0645\u06cc\u064e\u200c\u062e'],
    ['Hindi', '\u0915\u094d\u200d\u0937'],
    ['Hindi, apart', '\u0915\u094d\u200c\u0937'],
    ['a family', '👨\u200d👩\u200d👧'],
    ['a heart on fire', '❤\ufe0f\u200d🔥'],
    ['a woman of a skin color at a computer', '👩🏽\u200d💻'],
    ['a key', '1\ufe0f\u20e3'],
    ['Scotland', '🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}'],
    ['a Japanese name', '葛\u{e0100}城'],
  ]
  for (const [what, name] of needed) t.equal(textFault(`Van ${name}`, 'newName'), undefined, what)
  for (const char of [
    ...'\u00ad\u034f\u061c\u115f\u200b\u200c\u200d\u200e\u200f\u2060\u2064\u3164\ufe0f\ufeff\u{e0041}',
  ])
    for (const name of [`Pay${char}pal`, `${char}Paypal`, `Paypal${char}`, `\u0627${char}a`, `🚚${char}\u200d`])
      t.match(textFault(name, 'newName'), /zero width/, codesOf(name))
  t.equal(textFault('\u200b', 'newName'), 'must not be blank')
  t.equal(withoutInvisible('Pay\u200bpal 👨\u200d👩'), 'Paypal 👨\u200d👩')
  const long = '👩'.concat('\ufe0f'.repeat(60_000), '\u200d'.repeat(60_000))
  const began = process.cpuUsage().user
  textFault(long, 'newName')
  t.ok(process.cpuUsage().user - began < 500_000, 'one of any length is judged in no time')
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

test('marks that follow each other without end are refused, and are normalized in parts', async (t) => {
  const marks = (count: number): string => 'a' + '\u0301'.repeat(count) + '\u0316'.repeat(count)
  t.equal(textFault(marks(15), 'key'), undefined)
  t.match(textFault(marks(16), 'lines'), /combining marks/)
  t.match(textFault(`${'\uff9e\u0301'.repeat(16)}`, 'lines'), /combining marks/, 'that are marks once decomposed')
  t.equal(normalized(marks(15)), marks(15).normalize('NFC'))
  for (const form of ['NFC', 'NFKC', 'NFKD'] as const)
    for (const one of [marks(2_000), 'か' + '\u0301\uff9e'.repeat(2_000)])
      t.notMatch(normalized(one, form).replaceAll('\u034f', ' '), /\p{M}{33}/u, 'no part is long')
})
