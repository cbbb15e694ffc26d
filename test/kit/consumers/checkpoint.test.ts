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

test('a commit that leaves the checkpoint where it is moves it by a number, so that its loss is noticed', async (t) => {
  let now = 0
  const rows = new MemoryRows(() => now)
  rows.declare(THINGS)
  const commit = async (changes: readonly RowChange[], move?: CheckpointMove): Promise<void> =>
    rows.storeMove(changes, { ...(move as CheckpointMove), turn: now })
  const store = { take: async (consumer: string) => rows.take(consumer), commit }
  let owned = await OwnedCheckpoint.take(store, 'p')
  await owned.commit([put('s', 'a', { name: 'old' })], { 1: 5 })
  for (const at of [{ 1: 5 }, undefined]) {
    now += 10
    await owned.commit([put('s', 'a', { name: 'new' })], at)
    const later = await OwnedCheckpoint.take(store, 'p')
    t.same(later.reached, { 1: 5 })
    rows.loseSince(now)
    t.same(rows.get('things', 's', 'a'), { name: 'old' })
    await t.rejects(later.commit([put('s', 'names new', {})], { 1: 6 }), StaleCommit)
    owned = await OwnedCheckpoint.take(store, 'p')
  }
  await owned.commit([], { 1: 6 })
  t.same(rows.checkpoint('p'), { 1: 6 })
})

test('whichever of several commits without an answer was stored, the next one follows it', async (t) => {
  for (const stored of [1, 2, 3]) {
    const rows = new MemoryRows(() => 0)
    rows.declare(THINGS)
    let tries = 0
    const commit = async (changes: readonly RowChange[], move?: CheckpointMove): Promise<void> => {
      tries++
      if (tries === stored || tries > 3) rows.storeMove(changes, { ...(move as CheckpointMove), turn: tries })
      if (tries <= 3) throw new Failure('engine_down')
    }
    const owned = await OwnedCheckpoint.take({ take: async (consumer) => rows.take(consumer), commit }, 'p')
    for (const at of [7, 7, 8])
      await t.rejects(owned.commit([put('s', 'a', { at })], { all: at }), { code: 'engine_down' })
    await owned.commit([put('s', 'b', {})])
    t.same(owned.reached, { all: stored < 3 ? 7 : 8 }, 'no further than what is stored')
    await owned.commit([], { all: 9 })
    t.same(rows.checkpoint('p'), { all: 9 })
  }
})
