import { eventsOf } from '../../engines/event-log.ts'
import { RECORD_STREAMS } from '../../features/data/events.ts'
import { record } from '../../features/data/record.ts'
import { RecordWriter } from '../../features/data/record-writer.ts'
import { assertMayWrite } from '../../features/imports/import-form.ts'
import type { ImportError, ImportUndoRequested, ImportUndoResult } from '../../features/imports/events.ts'
import { IMPORT, IMPORT_UNDO, type ImportUndoRow, madeId } from '../../features/imports/views.ts'
import { task } from '../../features/tasks/task.ts'
import { TaskWriter } from '../../features/tasks/task-writer.ts'
import { TASK_STREAMS } from '../../features/tasks/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { grouped } from '../../kernel/grouped.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { JobRun, JobWork } from '../../kit/jobs/attempt.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { callerNow } from '../callers/caller-now.ts'
import { listedLog } from './listed-log.ts'
import { keptPages } from './pages.ts'
import { undoChange } from './undo-changes.ts'
import { isDeletedBy, undoRoutes } from './undo-routes.ts'

type UndoServices = ResourceServices & { clock: Clock; settle: Settle }

const ROWS_AT_A_TIME = 500
const AT_ONCE = 16
const ERRORS_MAX = 100

interface Reached extends ImportUndoResult {
  row: number
}

/** The work of undoing imports: made records are removed, changed ones restored, unless changed since by somebody. */
export const undoWork = (services: UndoServices): JobWork<ImportUndoRequested, ImportUndoRow> => ({
  kind: IMPORT_UNDO,
  run: async (run) => {
    const { log, listed } = listedLog(services.log, services.settle)
    const end = await runUndo({ ...services, log }, run)
    if (!run.signal.aborted) await listed()
    return end
  },
})

const runUndo = async (
  services: UndoServices,
  begun: JobRun<ImportUndoRequested>,
): Promise<{ processed: number; result: ImportUndoResult }> => {
  const run = { ...begun, asked: { ...begun.asked, lastRow: await lastRowOf(services.log, begun.asked) } }
  const { asked, signal, cursor } = run
  const caller = await callerNow(services.tables, asked.organizationId, asked.userId, services.clock.now())
  if (caller === undefined)
    throw new Failure('not_found', { message: 'The user who asked for this is not there any more.' })
  assertMayWrite(caller, asked.type)
  let reached = (cursor as Reached | undefined) ?? (await begunWith(services, caller, run))
  while (reached.row < asked.lastRow && !signal.aborted) {
    reached = await undoRows(services, caller, run, reached)
    await run.progress(reached.row, reached)
  }
  const { row, ...result } = reached
  return { processed: row, result }
}

/** Last row of the import: a cancelled one may have gone on for a while after its undo was requested. */
const lastRowOf = async (log: UndoServices['log'], { importId, lastRow }: ImportUndoRequested): Promise<number> => {
  const { row } = (await loadState(log, IMPORT.stream(importId), jobDecider(IMPORT, importId))).state
  return Math.max(lastRow, row?.result?.lastRow ?? 0)
}

/** Takes back the changes of rows and their places in routes; records made by them follow row by row. */
const begunWith = async (
  services: UndoServices,
  caller: UserCaller,
  run: JobRun<ImportUndoRequested>,
): Promise<Reached> => {
  const { importId, type, lastRow } = run.asked
  const isRoute = type === 'route'
  const reached: Reached = { row: isRoute ? lastRow : 0, undone: 0, kept: 0, errors: [] }
  for await (const { changed } of keptPages(services.log, importId)) {
    const byRecord = grouped(changed, ({ id }) => id)
    await severalAtOnce(byRecord, AT_ONCE, async ([id, rows]) => {
      const change = { type, importId, undoId: run.id, id }
      const undone = await undoChange(services, originOfUndo(services, caller, run), change)
      if (undone === 'undone') reached.undone += rows.length
      else if (undone !== 'nothing') for (const { row } of rows) keep(reached, row, undone.kept)
    })
  }
  const { removed, errors } = await undoRoutes(services, originOfUndo(services, caller, run), run, importId)
  for (const { row, message } of errors) keep(reached, row, message)
  reached.errors.sort((a, b) => a.row - b.row)
  return { ...reached, undone: isRoute ? removed : reached.undone }
}

const streamOf = (type: ImportUndoRequested['type'], id: string): string =>
  `${type === 'datasource' ? RECORD_STREAMS : TASK_STREAMS}${id}`

const actorOf = (importId: string): string => `import:${importId}`

/** Whether nobody but the import has written to a record that it made: a later row of it may have. */
const isUntouched = async (
  log: UndoServices['log'],
  { importId, type }: ImportUndoRequested,
  id: string,
): Promise<boolean> => {
  for await (const { metadata } of eventsOf(log, streamOf(type, id)))
    if (metadata.actor !== actorOf(importId)) return false
  return true
}

const originOfUndo = (
  { clock }: UndoServices,
  caller: UserCaller,
  { id, asked, attempt }: JobRun<ImportUndoRequested>,
): WriteOrigin => {
  const now = clock.now()
  const { organizationId } = asked
  const metadata = { organizationId, actor: `user:${caller.userId}`, $correlationId: id, $causationId: id }
  return { organizationId, caller, now, ids: { ...idSource(now), isRepeat: attempt > 1 ? undefined : false }, metadata }
}

const keep = (reached: Reached, row: number, message: string): void => {
  reached.kept++
  const error: ImportError = { row, column: null, code: 'conflict', message }
  if (reached.errors.length < ERRORS_MAX) reached.errors.push(error)
}

const undoRows = async (
  services: UndoServices,
  caller: UserCaller,
  run: JobRun<ImportUndoRequested>,
  before: Reached,
): Promise<Reached> => {
  const { asked } = run
  const reached = { ...before, errors: [...before.errors] }
  const last = Math.min(asked.lastRow, before.row + ROWS_AT_A_TIME)
  const rows = Array.from({ length: last - before.row }, (_, i) => before.row + 1 + i)
  const isRecord = asked.type === 'datasource'
  const [loads, writes] = isRecord
    ? [record.writer(services), new RecordWriter(services)]
    : [task.writer(services), new TaskWriter(services)]
  await severalAtOnce(rows, AT_ONCE, async (row) => {
    const made = madeId(asked.importId, asked.importedAt, row)
    const { state, version } = await loads.load(made)
    if (state.status !== 'live') {
      // An earlier attempt may have come further than it reported.
      const mayBeOwn = run.attempt > 1 && state.status === 'deleted'
      if (mayBeOwn && (await isDeletedBy(services, streamOf(asked.type, made), run.id))) reached.undone++
      return
    }
    if (version > 1 && !(await isUntouched(services.log, asked, made)))
      return keep(reached, row, `${made} was changed since`)
    try {
      await writes.delete(originOfUndo(services, caller, run), { id: made, expectedVersion: version })
      reached.undone++
    } catch (error) {
      if (!(error instanceof Failure) || error.status >= 500) throw error
      if (error.code !== 'not_found') keep(reached, row, error.message)
    }
  })
  return { ...reached, row: last }
}
