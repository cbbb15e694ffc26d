import { test } from 'tap'
import { encodeNativeBlock } from '../../src/engines/clickhouse-sql/native-block.ts'
import { nativeBlocks, NativeReader } from '../../src/engines/clickhouse-sql/native-reader.ts'

/** A block with every kind of column that the history has. */
const blockOf = (numbers: readonly number[]): Uint8Array =>
  encodeNativeBlock(
    [
      { name: 'at', type: "DateTime64(3, 'UTC')", values: BigInt64Array.from(numbers, BigInt) },
      { name: 'small', type: 'UInt16', values: Uint16Array.from(numbers) },
      { name: 'text', type: 'SimpleAggregateFunction(max, String)', values: numbers.map((n) => 'ż'.repeat(n % 300)) },
      {
        name: 'attempts',
        type: 'SimpleAggregateFunction(groupUniqArrayArray, Array(String))',
        values: { lists: numbers.map((n) => Array.from({ length: n % 4 }, (_, i) => `${n}.${i}`)) },
      },
    ],
    numbers.length,
  )

const SMALL = [[1, 2, 3], [], [200, 7], Array.from({ length: 40 }, (_, i) => i)].map(blockOf)
const LARGE = [...SMALL, blockOf(Array.from({ length: 500 }, (_, i) => i))]

/** Cut anywhere, as buffers that share their memory with something else. */
async function* chunksOf(blocks: readonly Uint8Array[], size: number): AsyncGenerator<Uint8Array> {
  const whole = Buffer.concat([Buffer.from('before'), ...blocks]).subarray(6)
  for (let at = 0; at < whole.byteLength; at += size) yield whole.subarray(at, at + size)
}

test('an answer is cut into the blocks that it was made of, wherever its chunks end', async (t) => {
  for (const [blocks, size] of [
    [SMALL, 1],
    [SMALL, 7],
    [LARGE, 1_000],
    [LARGE, 1_000_000],
  ] as const) {
    const found: Buffer[] = []
    for await (const block of nativeBlocks(chunksOf(blocks, size))) found.push(Buffer.from(block))
    t.same(
      found,
      blocks.map((block) => Buffer.from(block)),
      `in chunks of ${size}`,
    )
  }
  const cut = async function* () {
    yield SMALL[0].subarray(0, -1)
  }
  await t.rejects(
    async () => {
      for await (const _block of nativeBlocks(cut()));
    },
    { message: /ends within a block/ },
  )
})

test('columns out of a buffer that shares its memory are their own when they are copied', async (t) => {
  const block = encodeNativeBlock([{ name: 'n', type: 'Int32', values: Int32Array.of(1, 2, 3) }], 3)
  const shared = Buffer.concat([Buffer.from('something else'), block]).subarray(14)
  const [{ columns }] = new NativeReader().push(shared)
  t.same(new Int32Array((columns.get('n') as Uint8Array).slice().buffer as ArrayBuffer), Int32Array.of(1, 2, 3))
})
