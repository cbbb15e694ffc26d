import { isOver } from '../../features/tasks/views.ts'
import { invalid } from '../../kernel/errors.ts'
import { WouldWrite } from './dry-log.ts'
import { type PlacedTask, type RoutePlaces, type SaidPlace, saidPlace } from './route-places.ts'
import type { RowWriter, RowWritten } from './row-written.ts'
import type { TaskFinder } from './task-finder.ts'

/** Rows that give existing tasks their places. Nothing is written before all rows are read. */
export const routeRows = (finder: TaskFinder, places: RoutePlaces): RowWriter => ({
  keysOf: ({ taskId, externalId }) => [taskId, externalId],
  targetAt: (path) => path.slice(1),
  write: async (_origin, row, _id, values) => {
    const { taskId, externalId } = values
    if (taskId === undefined && externalId === undefined)
      throw invalid('/externalId', 'or the id of a task is required')
    const [by, path] =
      taskId === undefined
        ? [{ externalId: String(externalId) }, '/externalId']
        : [{ taskId: String(taskId) }, '/taskId']
    const said = saidPlace(values)
    if (said === undefined) throw invalid('/route', 'is required')
    const task = await finder.seen(by)
    if (task === undefined) throw invalid(path, 'names no task that you see')
    if (isOver(task)) throw invalid(path, `is a task that is ${task.state}`)
    const place = await places.take(row, said, { id: task._id, hubId: task.hubId, isNew: false })
    return { row: { _id: task._id }, isNew: true, place }
  },
})

/** Writes a task to which its row gives a place; a refused task has none. */
export const placed = async (
  places: RoutePlaces,
  asked: { row: number; said: SaidPlace; task: PlacedTask } | undefined,
  write: () => Promise<RowWritten>,
): Promise<RowWritten> => {
  if (asked === undefined) return write()
  const place = await places.take(asked.row, asked.said, asked.task)
  try {
    return { ...(await write()), place }
  } catch (error) {
    // A row of a dry run keeps its place against later rows.
    if (!(error instanceof WouldWrite)) await places.release(place)
    throw error
  }
}
