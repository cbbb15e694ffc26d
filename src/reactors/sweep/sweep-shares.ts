import { isDeepStrictEqual } from 'node:util'
import { pagesOf } from '../../engines/table-store.ts'
import { share } from '../../features/shares/share.ts'
import {
  endOfShare,
  isThere,
  SHARE_TOKENS,
  SHARES,
  type ShareRow,
  type ShareTokenRow,
} from '../../features/shares/views.ts'
import { TASK_STREAMS, TASKS, type TaskRow } from '../../features/tasks/views.ts'
import { TRACKERS_TABLE, type TrackerRow } from '../../features/trackers/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import type { Services } from '../../kit/services.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'

const PAGE_ROWS = 500
/** Shares swept at a time: ten thousand that end together share the appends of the log. */
const AT_ONCE = 64

type SweepServices = ResourceServices & Pick<Services, 'clock'>

/** Deletes expired shares, and moves shares to the hub to which their subject has moved. */
export const sweepShares = async (services: SweepServices, signal: AbortSignal): Promise<void> => {
  const question = { limit: PAGE_ROWS }
  for await (const page of pagesOf<ShareTokenRow>(services.tables, SHARE_TOKENS.name, NO_ORGANIZATION, question))
    await severalAtOnce(page, AT_ONCE, async ({ row }) => {
      if (!signal.aborted) await sweepOne(services, row)
    })
}

const sweepOne = async (services: SweepServices, { organizationId, shareId }: ShareTokenRow): Promise<void> => {
  const { tables, clock } = services
  const row = await tables.get<ShareRow>(SHARES, organizationId, shareId)
  if (row === undefined) return
  const { taskId, trackerId } = row
  const task = taskId === undefined ? undefined : await tables.get<TaskRow>(TASKS, organizationId, taskId)
  const tracker =
    taskId === undefined ? await tables.get<TrackerRow>(TRACKERS_TABLE, organizationId, trackerId as string) : undefined
  const now = clock.now()
  const metadata = { actor: 'reactor:sweep', organizationId }
  const origin = { organizationId, now, ids: idSource(now), metadata }
  const writer = share.writer(services)
  const hubIds = task === undefined ? tracker?.hubIds : [task.hubId]
  const stream = taskId === undefined ? `tracker-${trackerId}` : TASK_STREAMS + taskId
  // A table that is being built must not end existing shares.
  if (hubIds === undefined && !(await isGone(services, stream))) return
  try {
    if (hubIds === undefined || !isThere(row, task ?? tracker) || endOfShare(row, task) <= now)
      await writer.remove(origin, shareId)
    else if (!isDeepStrictEqual(hubIds, row.hubIds))
      await writer.update(origin, shareId, (before) => ({ ...before, hubIds }))
  } catch (error) {
    // It, or its subject, was deleted meanwhile.
    if (!(error instanceof Failure) || error.status >= 500) throw error
  }
}

const isGone = async ({ log }: SweepServices, stream: string): Promise<boolean> => {
  const [event] = await log.read(stream, 'end', 1, 'backwards')
  return event === undefined || /Deleted(\.v\d+)?$/.test(event.type)
}
