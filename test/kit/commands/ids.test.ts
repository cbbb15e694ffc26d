import { createHash } from 'node:crypto'
import { test } from 'tap'
import { v5, v7 } from 'uuid'
import { idFrom, idInOrder } from '../../../src/kit/commands/ids.ts'

const NAMESPACE = '6f5e7b0a-3c1d-5e0f-9a57-3b6e1c2d4f80'

test('derived ids are UUIDs of version 5, of names of any length and in any script', async (t) => {
  for (const name of ['', 'a', 'ż'.repeat(300), '€'.repeat(336), 'x'.repeat(337), '€'.repeat(2_000), 'a'])
    t.equal(idFrom(name, 3), v5(`${name}|3`, NAMESPACE), `${name.length} characters`)
})

test('ids in order are UUIDs of version 7 with their place as the sequence', async (t) => {
  for (const place of [0, 1, 63, 64, 1_048_575, 1_048_576, 2 ** 31, 2 ** 32 - 1])
    for (const atMs of [0, 1_790_000_000_000]) {
      const random = createHash('sha1').update(`seed|${place}`).digest().subarray(0, 16)
      t.equal(idInOrder(atMs, place, 'seed'), v7({ msecs: atMs, seq: place, random }), `${place} at ${atMs}`)
    }
})
