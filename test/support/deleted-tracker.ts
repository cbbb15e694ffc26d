import type { EventLog } from '../../src/engines/event-log.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'

/** What the stream of a tracker says of its making and of its deletion. */
const DATA = {
  organizationId: idFrom('organization', 'a'),
  values: { name: 'x', kind: 'device' },
  createdAt: '2026-01-01T00:00:00.000Z',
  at: '2026-01-01T00:00:01.000Z',
}

/** Appends a tracker that is made and deleted, after so many events of its stream. */
export const appendDeletedTracker = async (log: EventLog, trackerId: string, version = 0): Promise<typeof DATA> => {
  for (const [i, type] of ['trackerCreated', 'trackerDeleted'].entries()) {
    const ids = [idFrom(type, trackerId, version)]
    await appendFacts(log, `tracker-${trackerId}`, [{ type, data: DATA }], ids, version + i, {})
  }
  return DATA
}
