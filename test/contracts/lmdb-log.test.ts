import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { realClock } from './clocks.ts'
import { eventLogContract } from './event-log.ts'
import { folderOf } from '../support/folder-of.ts'

eventLogContract('lmdb', {
  open: (t) => openLmdbEventLog({ path: folderOf(t), clock: realClock }),
})
