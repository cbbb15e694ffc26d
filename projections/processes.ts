import { decodeJson } from '../src/kernel/event.ts'
import { NO_ORGANIZATION } from '../src/kernel/table.ts'
import { idOfStream } from '../src/kit/commands/declared-event.ts'
import { PROCESS, type ProcessStarted } from '../src/kit/commands/process.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'
import { OPEN_PROCESSES, type OpenProcessRow } from '../src/processes/views.ts'

/** Commands over several streams that have not ended. No command waits for it. */
export const processes: Projection = {
  name: 'processes',
  version: 1,
  tables: [OPEN_PROCESSES],
  prefixes: ['process-'],
  inputs: [PROCESS.started, PROCESS.finished],
  apply: (event, rows) => {
    const subject = idOfStream(event.stream)
    if (event.type === PROCESS.finished) return rows.delete(OPEN_PROCESSES.name, NO_ORGANIZATION, subject)
    const { process, organizationId, at } = decodeJson<ProcessStarted>(event.data)
    const row: OpenProcessRow = { process, organizationId, startedAt: at }
    rows.put(OPEN_PROCESSES.name, NO_ORGANIZATION, subject, row)
  },
}
