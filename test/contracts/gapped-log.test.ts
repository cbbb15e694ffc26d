import { folderOf } from '../support/folder-of.ts'
import { openGappedLog } from '../support/gapped-log.ts'
import { realClock } from './clocks.ts'
import { eventLogContract } from './event-log.ts'

eventLogContract('the log of tests with gaps between its positions', {
  open: (t) => openGappedLog({ path: folderOf(t), clock: realClock }),
})
