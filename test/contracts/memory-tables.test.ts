import { MemoryRows } from '../simulate/memory-rows.ts'
import { openMemoryTables } from '../simulate/memory-tables.ts'
import { plainWire } from '../simulate/wire.ts'
import { HeldClock } from './clocks.ts'
import { tableStoreContract } from './table-store.ts'

tableStoreContract('the tables of the simulator', {
  open: async () => {
    const clock = new HeldClock()
    const store = openMemoryTables(new MemoryRows(() => clock.now()), plainWire)
    return { store, now: () => clock.now(), pass: async (ms) => clock.pass(ms) }
  },
})
