import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { HeldClock } from './clocks.ts'
import { tableStoreContract } from './table-store.ts'
import { folderOf } from '../support/folder-of.ts'

tableStoreContract('lmdb', {
  open: async (t) => {
    const clock = new HeldClock()
    const store = await openLmdbTableStore({ path: folderOf(t), clock })
    return { store, now: () => clock.now(), pass: async (ms) => clock.pass(ms) }
  },
})
