import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { geofenceStream } from '../../features/geofences/events.ts'
import { geofence as geofenceDecider } from '../../features/geofences/geofence.ts'
import { GEOFENCE_DETAILS, GEOFENCES, type GeofenceRow } from '../../features/geofences/views.ts'
import { editingService } from '../../features/identity/sessions/authenticate-service.ts'
import { identityOf, userCaller } from '../../features/identity/sessions/authenticate.ts'
import { user as userResource } from '../../features/identity/users/user.ts'
import {
  ACCESS_ROLES,
  ACCESS_USERS,
  USERS_TABLE,
  type AccessRoleRow,
  type AccessUserRow,
} from '../../features/identity/views.ts'
import { ACCESS_SERVICES, type AccessServiceRow } from '../../features/service-accounts/views.ts'
import { tripToken } from '../../features/locations/trip-token.ts'
import { lastSeenIn, type LastSeen } from '../../features/locations/views.ts'
import { tracker as trackerResource } from '../../features/trackers/declaration.ts'
import { type StatusAges, withStatus } from '../../features/trackers/status.ts'
import { TRACKERS_TABLE, type TrackerRow } from '../../features/trackers/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Clock } from '../../kernel/clock.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { eventTypes, rowAfter, type ResourceData } from '../../kit/commands/declared-event.ts'
import { shownRow } from '../../kit/http/list-query.ts'
import type { Resource } from '../../kit/resource/resource.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { AskOnce, sharedReads } from './shared-reads.ts'
import type { SubjectServices } from './subject-event.ts'
import { SubjectRows } from './subject-rows.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'

export interface TrackerShown {
  /** As GET /tracker/{id} answers it; a deleted one in its last state, an erased one as `{_id}`. */
  shown: { [field: string]: unknown }
  hubIds: readonly string[]
  userId?: string
}

/** Present state of the records that events refer to. Each answers undefined for one that never existed. */
export interface Directory {
  /** `seenAt`: when it was seen at the earliest, ms since the epoch; the event may be ahead of its latest position. */
  tracker(organizationId: string, trackerId: string, seenAt: number): Promise<TrackerShown | undefined>
  /** As GET /user/{id} answers it. */
  user(organizationId: string, userId: string): Promise<{ [field: string]: unknown } | undefined>
  /** As GET /geofence/{id} answers it; its geometry may be left out. */
  geofence(organizationId: string, geofenceId: string): Promise<{ [field: string]: unknown } | undefined>
  /** The editor with present permissions and hubs; undefined if not active. @throws Failure engine_down if unknown */
  editor(organizationId: string, userId: string): Promise<UserCaller | undefined>
  inRollout(editor: UserCaller): boolean
  subjects: SubjectServices
  tripToken(trackerId: string, startedAt: number): string
}

export interface TableDirectoryOptions {
  log: EventLog
  tables: TableStore
  clock: Clock
  keyring: Keyring
  ages: StatusAges
  inRollout(editor: UserCaller): boolean
}

/** Maximum of remembered attributes of geofences: reading them reads the geometry too. */
const ATTRIBUTES_MAX = 500

/** The records that events refer to, from the tables; missing ones from their own streams, in their last state. */
export class TableDirectory implements Directory {
  private readonly options: TableDirectoryOptions
  private readonly attributes = new Map<string, unknown>()
  private readonly editors = new AskOnce<UserCaller | undefined>()
  readonly subjects: SubjectServices

  constructor(options: TableDirectoryOptions) {
    this.options = options
    const shared = sharedReads(options.tables)
    this.subjects = {
      rows: new SubjectRows(options.log),
      row: (table, organizationId, id) => shared.get(table, organizationId, id),
    }
  }

  async tracker(organizationId: string, trackerId: string, seenAt: number): Promise<TrackerShown | undefined> {
    const { tables, ages, clock } = this.options
    const lastSeen: LastSeen = async (...asked) =>
      (await lastSeenIn(tables)(...asked)).map((time) => Math.max(time ?? seenAt, seenAt))
    const row =
      (await tables.get<TrackerRow>(TRACKERS_TABLE, organizationId, trackerId)) ??
      (await this.lastTracker(organizationId, trackerId))
    if (row === undefined) return { shown: { _id: trackerId }, hubIds: [] }
    const [withTime] = await withStatus(lastSeen, ages, organizationId, [row], clock.now())
    const shown = shownAs(trackerResource)(withTime)
    return { shown, hubIds: row.hubIds, ...(row.userId !== undefined && { userId: row.userId }) }
  }

  async user(organizationId: string, userId: string): Promise<Row> {
    const row =
      (await this.options.tables.get(USERS_TABLE, organizationId, userId)) ??
      (await this.lastRow('user', organizationId, userId))
    return row === undefined ? { _id: userId } : shownAs(userResource)(row)
  }

  async geofence(organizationId: string, geofenceId: string): Promise<Row> {
    const row = await this.options.tables.get<GeofenceRow>(GEOFENCES.name, organizationId, geofenceId)
    if (row === undefined) return this.lastGeofence(organizationId, geofenceId)
    const attributes = await this.attributesOf(row)
    return attributes === undefined ? row : { ...row, attributes }
  }

  editor(organizationId: string, userId: string): Promise<UserCaller | undefined> {
    return this.editors.ask(`${organizationId}:${userId}`, () => this.editorNow(organizationId, userId))
  }

  private async editorNow(organizationId: string, userId: string): Promise<UserCaller | undefined> {
    const { tables, clock } = this.options
    const user = await tables.get<AccessUserRow>(ACCESS_USERS.name, organizationId, userId)
    if (user === undefined) {
      const account = await tables.get<AccessServiceRow>(ACCESS_SERVICES.name, organizationId, userId)
      if (account !== undefined) return editingService(tables, organizationId, userId, account, clock.now())
      if (await this.isThere('serviceAccount', userId)) throw behind('service accounts')
    }
    if (user === undefined && (await this.isThere('user', userId))) throw behind('users')
    if (user === undefined || user.status !== 'active') return undefined
    const role = await tables.get<AccessRoleRow>(ACCESS_ROLES.name, organizationId, user.roleId)
    if (role === undefined && (await this.isThere('role', user.roleId))) throw behind('roles')
    const identity = await identityOf(tables, user)
    return userCaller({ organizationId, userId, jti: '', expiresAt: 0 }, user, role, identity)
  }

  inRollout(editor: UserCaller): boolean {
    return this.options.inRollout(editor)
  }

  tripToken(trackerId: string, startedAt: number): string {
    return tripToken(this.options.keyring, trackerId, startedAt)
  }

  /** A deleted tracker, with the hubs that it had: those of its user, when it was a phone. */
  private async lastTracker(organizationId: string, trackerId: string): Promise<TrackerRow | undefined> {
    const row = (await this.lastRow('tracker', organizationId, trackerId)) as TrackerRow | undefined
    if (row === undefined) return undefined
    if (row.kind !== 'phone' || row.userId === undefined)
      return { ...row, hubIds: row.hubId === undefined ? [] : [row.hubId] }
    const user = await this.options.tables.get(USERS_TABLE, organizationId, row.userId)
    return { ...row, hubIds: (user?.hubId as string[] | undefined) ?? [] }
  }

  /** Whether its own stream has it though a table lacks it: a table being built must not hide existing records. */
  private async isThere(noun: string, id: string): Promise<boolean> {
    const [event] = await this.options.log.read(`${noun}-${id}`, 'end', 1, 'backwards')
    return event !== undefined && event.type !== eventTypes(noun).deleted
  }

  private async lastRow(noun: string, organizationId: string, id: string): Promise<Row | undefined> {
    const [event] = await this.options.log.read(`${noun}-${id}`, 'end', 1, 'backwards')
    if (event === undefined) return undefined
    const data = decodeJson<ResourceData>(event.data)
    if (data.organizationId !== organizationId || data.values === undefined) return undefined
    return rowAfter(event, data)
  }

  private async lastGeofence(organizationId: string, geofenceId: string): Promise<Row> {
    const { state } = await loadState(this.options.log, geofenceStream(geofenceId), geofenceDecider)
    if (state.values === undefined || state.organizationId !== organizationId) return { _id: geofenceId }
    const { shape: _geometry, ...values } = state.values
    const [createdAt, updatedAt] = [state.createdAt, state.updatedAt].map(formatTime)
    return { ...values, _id: geofenceId, organizationId, version: state.version, createdAt, updatedAt }
  }

  private async attributesOf({ organizationId, _id, version }: GeofenceRow): Promise<unknown> {
    const key = `${_id}:${version}`
    if (this.attributes.has(key)) return this.attributes.get(key)
    const details = await this.options.tables.get(GEOFENCE_DETAILS.name, organizationId, _id)
    if (this.attributes.size >= ATTRIBUTES_MAX) this.attributes.delete(this.attributes.keys().next().value as string)
    this.attributes.set(key, details?.attributes)
    return details?.attributes
  }
}

const behind = (table: string): Failure => new Failure('engine_down', { message: `The table of ${table} is behind.` })

/** A row as its resource answers it: nothing internal. */
const shownAs = ({ declaration }: Resource): ((row: Row) => Row) =>
  shownRow(listShape(declaration), undefined, { permissionDetails: [] })
