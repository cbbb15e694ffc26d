import { MemoryLog, openMemoryLog } from '../simulate/memory-log.ts'
import { plainWire } from '../simulate/wire.ts'
import { eventLogContract } from './event-log.ts'

eventLogContract('the log of the simulator', {
  open: async () => openMemoryLog(new MemoryLog({ now: () => Date.now(), storesAgain: () => false }), plainWire),
})
