import { openLmdbEventLog } from '../../src/engines/event-log.lmdb.ts'
import { realClock } from './clocks.ts'
import { eventLogContract } from './event-log.ts'

eventLogContract('lmdb', {
  open: (t) => openLmdbEventLog({ path: t.testdir(), clock: realClock }),
})
