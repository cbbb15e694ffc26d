import { test } from 'tap'
import { isPlainNumber, plainNumber } from '../../../src/kit/http/plain-number.ts'

test('numbers of a query are read as JSON and people write them, and in no other way', async (t) => {
  for (const [text, number] of [
    ['0', 0],
    ['-12.50', -12.5],
    ['007', 7],
    ['5e-7', 5e-7],
    ['1E+21', 1e21],
  ] as const)
    t.equal(plainNumber(text), number, text)
  for (const text of ['', ' ', ' 5', '5 ', '+5', '0x10', '0b1', '0o7', '.5', '5.', '5n', '1_0', 'NaN', 'Infinity', '٥'])
    t.ok(Number.isNaN(plainNumber(text)), JSON.stringify(text))
  for (const text of ['10', '-3', '0']) t.ok(isPlainNumber(text, 'integer'), text)
  for (const text of ['1e1', '1.0', '0x10', '', '+1']) t.notOk(isPlainNumber(text, 'integer'), text)
})
