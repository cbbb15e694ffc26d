import { test } from 'tap'
import { type CheckpointMove, StaleCommit } from '../../../src/engines/table-store.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import type { RowChange } from '../../../src/kernel/table.ts'
import { OwnedCheckpoint } from '../../../src/kit/consumers/checkpoint.ts'
import { put, THINGS } from '../../contracts/table-store-rows.ts'
import { folderOf } from '../../support/folder-of.ts'
import { MemoryRows } from '../../simulate/memory-rows.ts'
import { openServices } from '../../support/open-services.ts'

test('rows that come with a commit whose first try was stored without an answer are stored', async (t) => {
  const { tables, close } = await openServices(folderOf(t))
  t.teardown(close)
  await tables.declare(THINGS)
  let silent = 1
  const commit: typeof tables.commit = async (changes, move) => {
    await tables.commit(changes, move)
    if (silent-- > 0) throw new Failure('engine_down')
  }
  const owned = await OwnedCheckpoint.take({ take: (consumer) => tables.take(consumer), commit }, 'p')
  await t.rejects(owned.commit([put('s', 'a', { status: 'open' })], { all: 7 }), { code: 'engine_down' })
  await owned.commit([put('s', 'a', { status: 'late' }), put('s', 'b', { status: 'open' })], { all: 7 })
  t.same(await tables.getMany('things', 's', ['a', 'b']), [{ status: 'late' }, { status: 'open' }])
  silent = 1
  await t.rejects(owned.commit([], { all: 8 }), { code: 'engine_down' })
  await owned.commit([put('s', 'c', {})], { all: 9 })
  t.same(await tables.checkpoint('p'), { all: 9 }, 'it goes on from where its own commit ended')
})

test('what is stored in parts is refused at its end when the store has lost one of them meanwhile', async (t) => {
  let now = 0
  const rows = new MemoryRows(() => now)
  rows.declare(THINGS)
  const commit = async (changes: readonly RowChange[], move?: CheckpointMove): Promise<void> => {
    now++
    rows.storeMove(changes, { ...(move as CheckpointMove), turn: now })
    if (now === 2) rows.loseSince(2)
  }
  const owned = await OwnedCheckpoint.take({ take: async (consumer) => rows.take(consumer), commit }, 'p')
  await owned.commit([], { 1: 5 })
  const named = [put('s', 'a', {}), put('s', 'names a', {})]
  await t.rejects(owned.commitInParts(named, { 1: 6 }, 1), StaleCommit)
  t.equal(rows.get('things', 's', 'names a'), undefined, 'nothing names what is lost')
  const again = await OwnedCheckpoint.take({ take: async (consumer) => rows.take(consumer), commit }, 'p')
  t.same(again.reached, { 1: 5 })
  await again.commitInParts(named, { 1: 6 }, 1)
  t.same([rows.get('things', 's', 'a'), rows.get('things', 's', 'names a'), again.reached], [{}, {}, { 1: 6 }])
})
