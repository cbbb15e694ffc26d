import type { EventLog } from '../../engines/event-log.ts'
import { eventsOf } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { ImportMode, ImportPlace } from '../../features/imports/events.ts'
import { madeRouteId } from '../../features/imports/views.ts'
import { assertFree } from '../../features/routing/check-plan.ts'
import { TASKS_MAX } from '../../features/routing/result.ts'
import {
  ROUTING_RESULT_STREAMS,
  ROUTING_RESULTS,
  type RoutingRow,
  type RoutingValues,
} from '../../features/routing/views.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { grouped } from '../../kernel/grouped.ts'
import { keptText } from '../../kernel/text.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import type { KnownNames } from './known-names.ts'

/** Places of one import: they wait in memory until all rows are read. */
const PLACES_MAX = 100_000
const ROUTE_CHARS_MAX = 200
const SAME_NAME_MAX = 100

/** The place that a row requests. */
export interface SaidPlace {
  route: string
  vehicle: string
  sequence?: number
}

/** @throws Failure invalid for an incomplete place. Undefined where the row requests none. */
export const saidPlace = ({ route, vehicle, sequence }: JsonObject): SaidPlace | undefined => {
  if (route === undefined && vehicle === undefined && sequence === undefined) return undefined
  if (route === undefined) throw invalid('/route', 'is required beside vehicle and sequence')
  const name = keptText(String(route).trim(), 'newName')
  if (name.length > ROUTE_CHARS_MAX) throw invalid('/route', `must be at most ${ROUTE_CHARS_MAX} characters`)
  if (vehicle === undefined) throw invalid('/vehicle', 'is required beside route')
  const isWhole = sequence === undefined || (Number.isSafeInteger(sequence) && Number(sequence) >= 0)
  if (!isWhole) throw invalid('/sequence', 'must be a whole number from 0')
  return { route: name, vehicle: String(vehicle), ...(sequence !== undefined && { sequence: Number(sequence) }) }
}

/** A routing result that places of rows go into. */
interface RouteTarget {
  id: string
  /** Tasks that it had before this import. */
  taskIds: ReadonlySet<string>
  /** Places that rows have given. */
  given: number
}

export interface PlacedTask {
  id: string
  hubId: string
  isNew: boolean
}

interface PlacesOf {
  log: EventLog
  tables: TableStore
  organizationId: string
  importId: string
  mode: ImportMode
  attempt: number
  names: KnownNames
}

/** The places that rows give to tasks, checked row by row and kept until all rows are read. */
export class RoutePlaces {
  private readonly of: PlacesOf
  private readonly byTask = new Map<string, ImportPlace>()
  private readonly targets = new Map<string, Promise<RouteTarget>>()

  constructor(of: PlacesOf) {
    this.of = of
  }

  /** A place taken by an earlier attempt. */
  async restore(place: ImportPlace): Promise<void> {
    this.keep(await this.target(place.route, place.hubId), place)
  }

  /** @throws Failure invalid, conflict */
  async take(row: number, said: SaidPlace, task: PlacedTask): Promise<ImportPlace> {
    const { route, sequence } = said
    const { hubId, isNew } = task
    const vehicleId = await this.vehicleOf(said.vehicle, hubId)
    const target = await this.target(route, hubId)
    const { tables, organizationId } = this.of
    if (!isNew) await assertFree(tables, organizationId, target.id, [task.id])
    this.assertRoom(target, route, task.id)
    const place = { row, taskId: task.id, isNew, routingResultId: target.id, route, hubId, vehicleId }
    return this.keep(target, { ...place, ...(sequence !== undefined && { sequence }) })
  }

  /** Called when the row of the place was refused after all. */
  async release(place: ImportPlace): Promise<void> {
    if (this.byTask.get(place.taskId) !== place) return
    this.byTask.delete(place.taskId)
    ;(await this.target(place.route, place.hubId)).given--
  }

  /** Places by routing result, each in the order of the file. */
  all(): ImportPlace[][] {
    const places = [...this.byTask.values()].sort((a, b) => a.row - b.row)
    return [...grouped(places, ({ routingResultId }) => routingResultId).values()]
  }

  private assertRoom({ id, taskIds, given }: RouteTarget, route: string, taskId: string): void {
    const before = this.byTask.get(taskId)
    if (this.of.mode === 'insert') {
      if (before !== undefined) throw invalid('/route', `gives a place to the task of row ${before.row} again`)
      if (taskIds.has(taskId))
        throw new Failure('conflict', { message: `The task has a place in ${route} already; an upsert moves it.` })
    }
    const further = taskIds.has(taskId) || before?.routingResultId === id ? 0 : 1
    if (taskIds.size + given + further > TASKS_MAX)
      throw invalid('/route', `must not have more than ${TASKS_MAX} tasks in all`)
    if (before === undefined && this.byTask.size >= PLACES_MAX)
      throw invalid('/route', `must not come in more than ${PLACES_MAX} rows of a file`)
  }

  private keep(target: RouteTarget, place: ImportPlace): ImportPlace {
    const before = this.byTask.get(place.taskId)
    if (before === undefined) target.given++
    else if (before.routingResultId !== place.routingResultId) {
      target.given++
      void this.target(before.route, before.hubId).then((one) => one.given--)
    }
    this.byTask.set(place.taskId, place)
    return place
  }

  private async vehicleOf(said: string, hubId: string): Promise<string> {
    const named = await this.of.names.vehiclesNamed(said)
    if (named.length === 0) throw invalid('/vehicle', `names no vehicle that you see: ${JSON.stringify(said)}`)
    const fit = named.filter((one) => one.hubId === undefined || one.hubId === hubId)
    if (fit.length === 0) throw invalid('/vehicle', 'is a vehicle of another hub than the task')
    if (fit.length > 1) throw invalid('/vehicle', `is the name of ${fit.length} vehicles; write the id of one of them`)
    return fit[0].id
  }

  private target(route: string, hubId: string): Promise<RouteTarget> {
    const key = `${hubId}|${route}`
    const known = this.targets.get(key)
    if (known !== undefined) return known
    const found = this.findTarget(route, hubId)
    this.targets.set(key, found)
    return found
  }

  /** The newest planned result of that name and hub, else one that the import is going to make. */
  private async findTarget(route: string, hubId: string): Promise<RouteTarget> {
    const { log, tables, organizationId, importId, attempt } = this.of
    const ownId = madeRouteId(importId, hubId, route)
    const where = { name: route, hubId, state: 'planned' }
    const question = { where, limit: SAME_NAME_MAX }
    const { rows } = await tables.find<RoutingRow>(ROUTING_RESULTS, organizationId, question)
    const others = rows.filter(({ id }) => id !== ownId).sort((a, b) => (a.row.createdAt < b.row.createdAt ? 1 : -1))
    const other = others.at(0)
    const isOwn = attempt > 1 && (await routesWritten(log, ownId, importId)) !== undefined
    if (other === undefined || isOwn) return { id: ownId, taskIds: new Set(), given: 0 }
    // Tasks added by an earlier attempt do not count against it.
    const isDone = attempt > 1 && (await routesWritten(log, other.id, importId)) !== undefined
    return { id: other.id, taskIds: new Set(isDone ? [] : other.row.taskIds), given: 0 }
  }
}

/** Tasks of a routing result as an import left it; undefined where the import has not written it. */
export const routesWritten = async (
  log: EventLog,
  routingResultId: string,
  importId: string,
): Promise<ReadonlySet<string> | undefined> => {
  for await (const { metadata, data } of eventsOf(log, ROUTING_RESULT_STREAMS + routingResultId)) {
    if (metadata.$correlationId !== importId) continue
    const values = decodeJson<ResourceData>(data).values as unknown as RoutingValues
    return new Set(values.taskIds)
  }
  return undefined
}
