import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { LogCopy } from '../../src/cli/transfer/copy-log.ts'
import { CarriedLog, readCopyState } from '../../src/engines/carried-log.ts'
import type { EventLog } from '../../src/engines/event-log.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { folderOf } from '../support/folder-of.ts'
import { openGappedLog } from '../support/gapped-log.ts'
import { realClock } from './clocks.ts'
import { eventLogContract, newEvent } from './event-log.ts'

/** A log whose first events came from another one, where positions were higher, or lower. */
const carried = async (
  t: Test,
  openFrom: typeof openLmdbEventLog,
  openTo: typeof openLmdbEventLog,
): Promise<EventLog> => {
  const folder = folderOf(t)
  const from = await openFrom({ path: join(folder, 'from'), clock: realClock })
  for (let i = 0; i < 30; i++) await from.append(`earlier-${i % 3}`, [newEvent(), newEvent()], 'any')
  await from.truncateBefore('earlier-1', 9)
  const to = await openTo({ path: join(folder, 'to'), clock: realClock })
  const copy = await LogCopy.begin({ from, to, logId: 'one', newId: randomUUID })
  await copy.run()
  await copy.verify()
  await copy.end()
  await from.close()
  const state = await readCopyState(to)
  if (state === undefined) throw new Error('no copy')
  return new CarriedLog(to, state)
}

eventLogContract('a log that goes on where another one ended, with higher positions', {
  open: (t) => carried(t, openLmdbEventLog, openGappedLog),
})
eventLogContract('a log that goes on where another one ended, with lower positions', {
  open: (t) => carried(t, openGappedLog, openLmdbEventLog),
})
