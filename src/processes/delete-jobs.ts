import type { EventLog } from '../engines/event-log.ts'
import type { TableStore } from '../engines/table-store.ts'
import { unlessGone } from '../kernel/errors.ts'
import { handleCommand } from '../kit/commands/handle-command.ts'
import type { OriginOf } from '../kit/commands/process.ts'
import { severalAtOnce } from '../kit/commands/several-at-once.ts'
import type { JobKind, KeptJobs } from '../kit/jobs/job.ts'
import { jobDecider } from '../kit/jobs/life.ts'

const AT_ONCE = 8

/** Deletes the jobs of an organization; their runner removes the files. */
export const deleteJobs = async (
  log: EventLog,
  tables: Pick<TableStore, 'scan'>,
  keptJobs: readonly KeptJobs[],
  originOf: OriginOf,
): Promise<undefined> => {
  for (const { kind, table } of keptJobs) {
    const ids: string[] = []
    for await (const { id } of tables.scan(table.name, originOf().organizationId)) ids.push(id)
    await severalAtOnce(ids, AT_ONCE, (id) => deleteJob(log, kind, id, originOf))
  }
}

/** Cancels it before: the deletion of an open job repeats its row. */
const deleteJob = async (log: EventLog, kind: JobKind<never>, id: string, originOf: OriginOf): Promise<void> => {
  for (const what of ['cancel', 'delete'] as const) {
    const { organizationId, now: at, ...origin } = originOf(`${what} ${kind.kind} ${id}`)
    const command = { kind: what, organizationId, at }
    await unlessGone(handleCommand(log, kind.stream(id), jobDecider(kind, id), command, origin))
  }
}
