import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import { OwnedCheckpoint } from '../../../src/kit/consumers/checkpoint.ts'
import { put, THINGS } from '../../contracts/table-store-rows.ts'
import { folderOf } from '../../support/folder-of.ts'
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
