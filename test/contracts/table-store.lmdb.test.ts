import { openLmdbTableStore } from '../../src/engines/table-store.lmdb.ts'
import { HeldClock } from './clocks.ts'
import { tableStoreContract } from './table-store.ts'

tableStoreContract('lmdb', {
  open: async (t) => {
    const clock = new HeldClock()
    const store = await openLmdbTableStore({ path: t.testdir(), clock })
    return { store, now: () => clock.now(), pass: async (ms) => clock.pass(ms) }
  },
})
