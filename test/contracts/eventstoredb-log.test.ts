import { randomUUID } from 'node:crypto'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'
import { eventLogContract } from './event-log.ts'

const REAL = process.env.WAYMARK_TEST_EVENTSTOREDB

eventLogContract(REAL === undefined ? 'eventstoredb (server of the tests)' : 'eventstoredb (real server)', {
  open: async (t) => {
    if (REAL !== undefined) return openEventstoredbLog({ url: REAL, newId: randomUUID, now: Date.now })
    const server = await openEventstoredbServer({ path: `${folderOf(t)}/log` })
    const log = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: Date.now })
    t.teardown(() => server.close())
    return log
  },
})
