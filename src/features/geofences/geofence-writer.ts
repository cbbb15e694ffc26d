import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { keptShape } from '../../geo/shape.ts'
import { handleCommand, loadState } from '../../kit/commands/handle-command.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { mergePatch } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/write.ts'
import type { Wrote } from '../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { geofenceStream, type GeofenceValues } from './events.ts'
import { CREATE_SCHEMA, patched, valuesOf } from './geofence-body.ts'
import { geofence, type GeofenceState } from './geofence.ts'
import { flat } from './import-features.ts'
import type { ShapeChecker } from './shape-checker.ts'
import { detailsOf, GEOFENCE_GROUPS } from './views.ts'

export interface WriterServices {
  log: EventLog
  tables: TableStore
  shapes: ShapeChecker
}

export interface WrittenGeofence {
  row: Row
  wrote?: Wrote
}

const TRIES = 5

const wholeBody = compileCheck(CREATE_SCHEMA)

/** The writes of geofences, below their routes. */
export class GeofenceWriter {
  private readonly services: WriterServices

  constructor(services: WriterServices) {
    this.services = services
  }

  async create(origin: WriteOrigin, { _id, ...body }: JsonObject): Promise<WrittenGeofence> {
    const id = (_id as string | undefined) ?? origin.ids.next()
    const values = await this.checked(origin.organizationId, valuesOf(body), undefined)
    const { organizationId, now } = origin
    return this.handle(id, { kind: 'create', organizationId, values, at: now }, origin, undefined)
  }

  /**
   * `replace` takes a whole body, `amend` a merge patch (RFC 7396).
   * @throws Failure not_found, invalid, stale_version, conflict after five lost races, overloaded.
   */
  async change(
    origin: WriteOrigin,
    id: string,
    kind: 'replace' | 'amend',
    body: JsonObject,
    expectedVersion?: number,
  ): Promise<WrittenGeofence> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.tryChange(origin, id, kind, body, expectedVersion)
      } catch (error) {
        const isLostRace = error instanceof Failure && error.code === 'stale_version' && expectedVersion === undefined
        if (!isLostRace || tries === TRIES) throw error
      }
    }
  }

  async delete(origin: WriteOrigin, id: string, expectedVersion?: number): Promise<WrittenGeofence> {
    const { organizationId, now } = origin
    return this.handle(id, { kind: 'delete', organizationId, at: now }, origin, expectedVersion)
  }

  private async tryChange(
    origin: WriteOrigin,
    id: string,
    kind: 'replace' | 'amend',
    body: JsonObject,
    expectedVersion?: number,
  ): Promise<WrittenGeofence> {
    const { organizationId, now } = origin
    const { state, version } = await this.load(organizationId, id)
    if (expectedVersion !== undefined && expectedVersion !== version)
      throw new Failure('stale_version', { extra: { version } })
    const before = state.values as GeofenceValues
    const whole = writable(
      kind === 'replace'
        ? body
        : patched(before, writable(body), (target, patch) => mergePatch(target, patch) as JsonObject),
    )
    assertValid(wholeBody, whole)
    const values = await this.checked(organizationId, valuesOf(whole), before)
    return this.handle(id, { kind: 'change', organizationId, values, at: now }, origin, version)
  }

  private async load(organizationId: string, id: string): Promise<{ state: GeofenceState; version: number }> {
    const loaded = await loadState(this.services.log, geofenceStream(id), geofence)
    if (loaded.state.status !== 'live' || loaded.state.organizationId !== organizationId) throw new Failure('not_found')
    return loaded
  }

  /** The values as they are kept. @throws Failure invalid, overloaded. */
  private async checked(
    organizationId: string,
    values: GeofenceValues,
    before: GeofenceValues | undefined,
  ): Promise<GeofenceValues> {
    if (values.geofenceGroupId !== before?.geofenceGroupId) {
      await assertExists(
        this.services.tables,
        GEOFENCE_GROUPS,
        organizationId,
        values.geofenceGroupId,
        '/geofenceGroupId',
      )
    }
    if (JSON.stringify(values.shape) === JSON.stringify(before?.shape)) return values
    await this.services.shapes.assertValid(values.shape)
    return { ...values, shape: keptShape(flat(values.shape)) }
  }

  private async handle(
    id: string,
    command: Parameters<typeof geofence.decide>[0],
    { ids, metadata }: WriteOrigin,
    expectedVersion: number | undefined,
  ): Promise<WrittenGeofence> {
    const { state, version, wrote } = await handleCommand(this.services.log, geofenceStream(id), geofence, command, {
      ids,
      metadata,
      expectedVersion,
    })
    return { row: rowOfState(id, state, version), wrote }
  }
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

/** Without what a GET answers and nobody may write. */
const writable = ({ _id, organizationId, createdAt, updatedAt, version, ...body }: JsonObject): JsonObject => body
