import { test } from 'tap'
import { readUuid, writeUuid } from '../../src/kernel/uuid-bytes.ts'

const TEXT = '01234567-89ab-cdef-fedc-ba9876543210'
const BYTES = '0123456789abcdeffedcba9876543210'

test('a UUID is its digits in order, and is read in lower case', (t) => {
  const bytes = Buffer.alloc(20, 0xff)
  writeUuid(TEXT.toUpperCase(), bytes, 3)
  t.equal(bytes.toString('hex'), `ffffff${BYTES}ff`)
  t.equal(readUuid(bytes, 3), TEXT)
  t.end()
})

test('every byte has its two digits', (t) => {
  for (let byte = 0; byte < 256; byte++) {
    const bytes = Buffer.alloc(16, byte)
    t.equal(readUuid(bytes, 0).replaceAll('-', ''), bytes.toString('hex'))
  }
  t.end()
})

test('what is no UUID is refused', (t) => {
  const bytes = Buffer.alloc(16)
  for (const text of ['', TEXT.slice(1), `${TEXT}0`, `g${TEXT.slice(1)}`, TEXT.replaceAll('-', '_')])
    t.throws(() => writeUuid(text, bytes, 0), { message: `not a UUID: ${text}` })
  t.end()
})
