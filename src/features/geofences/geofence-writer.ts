import { keptShape, positionsOf } from '../../geo/shape.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { objectSchema } from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { type TakePlace, withinQuotas } from '../../kit/quotas/quotas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { assertReferences } from '../../kit/resource/references.ts'
import {
  assertVersion,
  type Change,
  type Deletion,
  type ResourceWrites,
  type WriteOrigin,
  type Written,
} from '../../kit/resource/writes.ts'
import { geofence as geofenceResource } from './declaration.ts'
import { geofenceStream, type GeofenceValues } from './events.ts'
import { GEOFENCE_FIELDS, patched, valuesOf } from './geofence-body.ts'
import { geofence, type GeofenceCommand, type GeofenceState } from './geofence.ts'
import { flat } from './import-features.ts'
import type { ShapeChecker } from './shape-checker.ts'
import { detailsOf, GEOFENCES, POSITIONS } from './views.ts'

const wholeBody = compileCheck(objectSchema(GEOFENCE_FIELDS))

export class GeofenceWriter implements ResourceWrites {
  private readonly services: ResourceServices & { shapes: ShapeChecker }

  constructor(services: ResourceServices & { shapes: ShapeChecker }) {
    this.services = services
  }

  async create(origin: WriteOrigin, { _id, ...body }: JsonObject): Promise<Written> {
    const id = (_id as string | undefined)?.toLowerCase() ?? origin.ids.next()
    const { organizationId, now: at } = origin
    return this.handle(id, origin, async ({ status }, _version, take) => {
      const values = await this.checked(origin, valuesOf(body), undefined)
      if (status === 'absent') {
        await take(GEOFENCES.name)
        await take(POSITIONS, positionsOf(values.shape))
      }
      return { kind: 'create', organizationId, values, at }
    })
  }

  /** @throws Failure not_found, invalid, stale_version, conflict, quota, overloaded. */
  change(origin: WriteOrigin, { id, kind, body, expectedVersion }: Change): Promise<Written> {
    const { organizationId, now } = origin
    return this.handle(id, origin, async (state, version, take) => {
      const before = liveValues(state, organizationId)
      assertVersion(expectedVersion, version)
      const whole = writable(kind === 'replace' ? body : patched(before, writable(body)))
      assertValid(wholeBody, whole)
      const values = await this.checked(origin, valuesOf(whole), before)
      const more = positionsOf(values.shape) - positionsOf(before.shape)
      if (more > 0) await take(POSITIONS, more)
      return { kind: 'change', organizationId, values, at: now }
    })
  }

  delete(origin: WriteOrigin, { id, expectedVersion }: Deletion): Promise<Written> {
    const { organizationId, now } = origin
    return this.handle(id, origin, async (state, version) => {
      liveValues(state, organizationId)
      assertVersion(expectedVersion, version)
      return { kind: 'delete', organizationId, at: now }
    })
  }

  /** The values to store. @throws Failure invalid, overloaded. */
  private async checked(
    { caller, organizationId }: WriteOrigin,
    values: GeofenceValues,
    before: GeofenceValues | undefined,
  ): Promise<GeofenceValues> {
    const [named, known] = [values, before].map((some) => some && { geofenceGroupId: some.geofenceGroupId })
    await assertReferences(geofenceResource.declaration, this.services, caller, organizationId, named ?? {}, known)
    if (JSON.stringify(values.shape) === JSON.stringify(before?.shape)) return values
    await this.services.shapes.assertValid(organizationId, values.shape)
    return { ...values, shape: keptShape(flat(values.shape)) }
  }

  private async handle(
    id: string,
    { organizationId, ids, metadata }: WriteOrigin,
    command: (state: GeofenceState, version: number, take: TakePlace) => Promise<GeofenceCommand>,
  ): Promise<Written> {
    const context = { ids, metadata }
    const { log, quotas } = this.services
    const { state, version, wrote } = await withinQuotas(quotas, organizationId, (take) =>
      handleCommand(log, geofenceStream(id), geofence, (before, at) => command(before, at, take), context),
    )
    return { row: rowOfState(id, state, version), wrote }
  }
}

const liveValues = ({ status, organizationId, values }: GeofenceState, asked: string): GeofenceValues => {
  if (status !== 'live' || organizationId !== asked || values === undefined) throw new Failure('not_found')
  return values
}

const rowOfState = (
  id: string,
  { organizationId, values, createdAt, updatedAt }: GeofenceState,
  version: number,
): Row => {
  const { name, geofenceGroupId, isActive, ...rest } = values as GeofenceValues
  const times = { createdAt: formatTime(createdAt), updatedAt: formatTime(updatedAt) }
  return { _id: id, organizationId, version, ...times, name, geofenceGroupId, isActive, ...detailsOf(rest) }
}

/** Removes members that a GET answers and nobody may write. */
const writable = ({ _id, organizationId, createdAt, updatedAt, version, ...body }: JsonObject): JsonObject => body
