import { test } from 'tap'
import { DocReader, type DocMember } from '../../src/engines/lmdb-tables/docs.ts'
import { pack } from '../../src/engines/lmdb-tables/layout.ts'

const VALUES: readonly DocMember[] = [
  null,
  '',
  'short',
  'żółć 😀',
  'x'.repeat(31),
  'x'.repeat(32),
  'ü'.repeat(200),
  'y'.repeat(70_000),
  ...[0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1e15, 1e300],
  ...[-1, -32, -33, -128, -129, -32_768, -32_769, -(2 ** 31), -(2 ** 31) - 1, 0.1, -1.5, Number.POSITIVE_INFINITY],
]

/** As LMDB answers: in a memory that is used again, whose rest holds what was read before. */
const readerOf = (doc: readonly DocMember[]): DocReader => {
  const packed = pack(doc)
  const bytes = Buffer.concat([packed, Buffer.alloc(100, 7)])
  const env = { docs: { getBinaryFast: () => Object.defineProperty(bytes, 'length', { value: packed.length }) } }
  return new DocReader(env as never, undefined as never, Buffer.alloc(8))
}

test('members of a doc are read as they were packed, whatever stands before them', async (t) => {
  for (const [i, value] of VALUES.entries()) {
    for (const before of VALUES) {
      const found = readerOf(['id', before, value, 'last']).read(7, [0, 2, 3])
      if (found?.[0] === 'id' && Object.is(found[1], value) && found[2] === 'last') continue
      t.strictSame(found, ['id', value, 'last'], `${i} behind ${String(before).slice(0, 20)}`)
    }
  }
  const long = ['id', ...VALUES]
  t.strictSame(
    readerOf(long).read(
      1,
      long.map((_, place) => place),
    ),
    long,
    'an array of more than 15',
  )
  t.strictSame(readerOf(long).read(1, [0, 3]), ['id', 'short'])
  t.strictSame(readerOf(['id', 1]).read(1, [0, 1, 5]), ['id', 1, null], 'a member that is not there')
})
