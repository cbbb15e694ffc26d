import { test } from 'tap'
import { pack, unpack } from '../../src/engines/lmdb-tables/layout.ts'
import { MemberReader } from '../../src/engines/lmdb-tables/packed-values.ts'
import type { Json, JsonObject } from '../../src/kernel/json.ts'
import { freshlySeeded } from '../support/random.ts'

const SCALARS: readonly Json[] = [
  ...[null, true, false, '', 'short', 'żółć 😀', 'x'.repeat(31), 'ü'.repeat(200), 'y'.repeat(300)],
  ...[0, 127, 128, 65_536, 2 ** 32, 1e300, -1, -33, -32_769, 0.1],
]
const NAMES = ['_id', 'values', 'terms', 'wörds', 'n'.repeat(40), ...Array.from({ length: 20 }, (_, i) => `s${i}`)]

test('objects are read with the members that were asked for', async (t) => {
  const random = freshlySeeded(t)
  const below = (count: number): number => Math.floor(random() * count)
  const randomValue = (depth: number): Json => {
    const kind = depth === 0 ? 0 : below(4)
    if (kind === 1) return Array.from({ length: below(18) }, () => randomValue(depth - 1))
    if (kind === 2) return Object.fromEntries(NAMES.slice(below(25)).map((name) => [name, randomValue(depth - 1)]))
    return SCALARS[below(SCALARS.length)]
  }
  for (let round = 0; round < 100; round += 1) {
    const object: JsonObject = {}
    for (const name of NAMES) if (below(3) > 0) object[name] = randomValue(2)
    const members = NAMES.filter(() => below(2) > 0)
    const packed = pack(object)
    const bytes = Buffer.concat([Buffer.alloc(5, 7), packed, Buffer.alloc(9, 7)])
    const found = new MemberReader(members).read<JsonObject>(bytes, 5, 5 + packed.length)
    const isWanted = ([name]: [string, Json]): boolean => members.includes(name) || Buffer.byteLength(name) > 31
    t.strictSame(Object.entries(found), Object.entries(object).filter(isWanted))
  }
})

test('an object with a value of an unusual kind is read whole', async (t) => {
  const object = { a: 1, b: new Date(5), c: undefined, d: new Uint8Array([1, 2]) }
  const packed = pack(object)
  const found = new MemberReader(['a', 'd']).read<typeof object>(packed, 0, packed.length)
  t.strictSame(found, unpack(packed))
  t.ok(found.d instanceof Uint8Array && !Buffer.isBuffer(found.d))
})
