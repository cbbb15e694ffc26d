import type { ImportPlace, ImportUndoRequested } from '../../features/imports/events.ts'
import { madeRouteId } from '../../features/imports/views.ts'
import { routingResult } from '../../features/routing/result.ts'
import { RoutingWriter } from '../../features/routing/routing-writer.ts'
import { ROUTING_RESULT_STREAMS } from '../../features/routing/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { grouped } from '../../kernel/grouped.ts'
import type { JobRun } from '../../kit/jobs/attempt.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { keptPages } from './pages.ts'

interface UndoneRoutes {
  /** Places that are gone with their routing results. */
  removed: number
  errors: { row: number; message: string }[]
}

/** Takes back the routing results that an import made. Repeating it answers the same. */
export const undoRoutes = async (
  services: ResourceServices,
  origin: WriteOrigin,
  run: JobRun<ImportUndoRequested>,
  importId: string,
): Promise<UndoneRoutes> => {
  const all: ImportPlace[] = []
  for await (const { places = [] } of keptPages(services.log, importId)) all.push(...places)
  const results = grouped(all, ({ routingResultId }) => routingResultId)
  const undone: UndoneRoutes = { removed: 0, errors: [] }
  for (const [id, places] of results) {
    const [{ hubId, route }] = places
    const reason =
      id === madeRouteId(importId, hubId, route)
        ? await remove(services, origin, run, id)
        : { kept: `the routing result ${id} was there before and keeps its places` }
    if ('removed' in reason) undone.removed += reason.removed
    else {
      // The tasks of visits are counted by themselves.
      const rows = run.asked.type === 'route' ? places : places.slice(0, 1)
      undone.errors.push(...rows.map(({ row }) => ({ row, message: reason.kept })))
    }
  }
  return undone
}

const remove = async (
  services: ResourceServices,
  origin: WriteOrigin,
  run: JobRun<ImportUndoRequested>,
  id: string,
): Promise<{ removed: number } | { kept: string }> => {
  const { state, version } = await routingResult.writer(services).load(id)
  if (state.status === 'absent') return { removed: 0 }
  const removed = (state.first.values.taskIds as string[]).length
  if (state.status === 'deleted')
    return { removed: (await isDeletedBy(services, ROUTING_RESULT_STREAMS + id, run.id)) ? removed : 0 }
  const kept = `the routing result ${id} was changed since`
  if (version > 1) return { kept }
  try {
    await new RoutingWriter(services).delete(origin, { id, expectedVersion: 1 })
    return { removed }
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    return error.code === 'not_found' ? { removed: 0 } : { kept }
  }
}

/** Whether this undo deleted the record of a stream. */
export const isDeletedBy = async ({ log }: ResourceServices, stream: string, undoId: string): Promise<boolean> => {
  const [last] = await log.read(stream, 'end', 1, 'backwards')
  return last?.metadata.$correlationId === undoId
}
