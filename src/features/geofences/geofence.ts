import { isDeepStrictEqual } from 'node:util'
import type { Decider } from '../../kernel/decider.ts'
import { Failure, taken } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import {
  GEOFENCE_CHANGED,
  GEOFENCE_CREATED,
  GEOFENCE_DELETED,
  type GeofenceChanged,
  type GeofenceCreated,
  type GeofenceDeleted,
  type GeofenceValues,
} from './events.ts'

export interface GeofenceState {
  status: 'absent' | 'live' | 'deleted'
  organizationId: string
  values: GeofenceValues | undefined
  /** Values of the create, to recognise its repetition. */
  first: GeofenceValues | undefined
  createdAt: number
  updatedAt: number
  version: number
  /** Version that last changed the shape. */
  shapeVersion: number
}

export type GeofenceCommand =
  | { kind: 'create'; organizationId: string; values: GeofenceValues; at: number }
  /** All values after the change. */
  | { kind: 'change'; organizationId: string; values: GeofenceValues; at: number }
  | { kind: 'delete'; organizationId: string; at: number }

const ABSENT_GEOFENCE: GeofenceState = {
  status: 'absent',
  organizationId: '',
  values: undefined,
  first: undefined,
  createdAt: 0,
  updatedAt: 0,
  version: 0,
  shapeVersion: 0,
}

/** A geofence: created, changed, deleted. Repeating a create with the same values changes nothing. */
export const geofence: Decider<GeofenceState, GeofenceCommand> = {
  initial: ABSENT_GEOFENCE,

  decide: (command, state) => {
    if (command.kind === 'create') return decideCreate(command, state)
    if (state.status !== 'live' || state.organizationId !== command.organizationId || state.values === undefined)
      throw new Failure('not_found')
    const { organizationId, at } = command
    if (command.kind === 'delete')
      return [{ type: GEOFENCE_DELETED, data: { organizationId, at } satisfies GeofenceDeleted }]
    const changes = changesBetween(state.values, command.values)
    if (Object.keys(changes).length === 0) return []
    return [{ type: GEOFENCE_CHANGED, data: { organizationId, changes, at } satisfies GeofenceChanged }]
  },

  evolve: (state, fact) => {
    const version = state.version + 1
    if (fact.type === GEOFENCE_CREATED) {
      const { organizationId, at, ...values } = fact.data as GeofenceCreated
      return {
        status: 'live',
        organizationId,
        values,
        first: values,
        createdAt: at,
        updatedAt: at,
        version,
        shapeVersion: version,
      }
    }
    if (fact.type === GEOFENCE_CHANGED) return changed(state, fact.data as GeofenceChanged, version)
    if (fact.type === GEOFENCE_DELETED)
      return { ...state, status: 'deleted', updatedAt: (fact.data as GeofenceDeleted).at, version }
    return { ...state, version }
  },
}

const decideCreate = (
  { organizationId, values, at }: GeofenceCommand & { kind: 'create' },
  state: GeofenceState,
): Fact[] => {
  if (state.status === 'absent')
    return [{ type: GEOFENCE_CREATED, data: { ...values, organizationId, at } satisfies GeofenceCreated }]
  const isSame =
    state.status === 'live' && state.organizationId === organizationId && isDeepStrictEqual(state.first, values)
  if (isSame) return []
  throw taken('/_id', 'conflict')
}

const changesBetween = (before: GeofenceValues, after: GeofenceValues): GeofenceChanged['changes'] => {
  const changes: { [name: string]: unknown } = {}
  for (const name of ['name', 'geofenceGroupId', 'isActive', 'shape', 'attributes'] as const) {
    if (!isDeepStrictEqual(before[name], after[name])) changes[name] = after[name] ?? null
  }
  return changes as GeofenceChanged['changes']
}

const changed = (state: GeofenceState, { changes, at }: GeofenceChanged, version: number): GeofenceState => {
  const { attributes, ...rest } = changes
  const values = { ...(state.values as GeofenceValues), ...rest }
  if (attributes === null) delete values.attributes
  else if (attributes !== undefined) values.attributes = attributes
  return {
    ...state,
    values,
    updatedAt: at,
    version,
    shapeVersion: changes.shape === undefined ? state.shapeVersion : version,
  }
}
