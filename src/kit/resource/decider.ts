import { isDeepStrictEqual } from 'node:util'
import type { Decider } from '../../kernel/decider.ts'
import { Failure, taken } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { eventTypes, type ResourceData } from '../commands/declared-event.ts'
import type { ResourceDeclaration } from './declaration.ts'

export interface ResourceState {
  status: 'absent' | 'live' | 'deleted'
  organizationId: string
  values: JsonObject
  sealed: { [field: string]: string }
  /** Data of the first create, to recognize its repetition. */
  first: Pick<ResourceData, 'values' | 'sealed'>
  createdAt: string
  updatedAt: string
}

export const ABSENT: ResourceState = {
  status: 'absent',
  organizationId: '',
  values: {},
  sealed: {},
  first: { values: {} },
  createdAt: '',
  updatedAt: '',
}

/** `data` are the future values; secrets are sealed, and an unchanged one stays sealed as it was. */
export type ResourceCommand = { type: 'create' | 'change' | 'delete' | 'restore'; data: ResourceData }

/** Opens secrets, so that two creates with the same data are recognized although no text is sealed twice alike. */
export type OpenValues = (data: Pick<ResourceData, 'values' | 'sealed'>) => JsonObject

/**
 * The life of one record: created, changed, deleted, and restored where it was deleted at the moment when another
 * record came to name it. A create that repeats the first one changes nothing. The values are validated before: that
 * needs other records.
 */
export const resourceDecider = (
  {
    noun,
    internal = {},
    readOnly = {},
    idFrom,
  }: Pick<ResourceDeclaration, 'noun' | 'internal' | 'readOnly' | 'idFrom'>,
  open: OpenValues,
): Decider<ResourceState, ResourceCommand> => {
  const types = eventTypes(noun)
  const said = (data: Pick<ResourceData, 'values' | 'sealed'>): JsonObject =>
    Object.fromEntries(
      Object.entries(open(data)).filter(([name]) => !Object.hasOwn(internal, name) && !Object.hasOwn(readOnly, name)),
    )
  return {
    initial: ABSENT,
    decide: ({ type, data }, state) => {
      if (type === 'create') {
        if (canBeMade({ idFrom }, state, data.values)) return [{ type: types.created, data }]
        const isRepeated = state.status === 'live' && state.organizationId === data.organizationId
        if (isRepeated && isDeepStrictEqual(said(data), said(state.first))) return []
        if (idFrom !== undefined && data.values[idFrom.field] !== undefined) throw taken(`/${idFrom.field}`)
        throw taken('/_id', 'conflict')
      }
      // Nothing is made, so that no consumer sees a new record.
      if (type === 'restore')
        return state.status === 'deleted' && !isErased(state) ? [{ type: types.changed, data }] : []
      if (state.status !== 'live' || state.organizationId !== data.organizationId) throw new Failure('not_found')
      if (type === 'delete') return [{ type: types.deleted, data }]
      const isSame = isDeepStrictEqual(data.values, state.values) && isDeepStrictEqual(data.sealed ?? {}, state.sealed)
      return isSame ? [] : [{ type: types.changed, data }]
    },
    evolve: evolveResource(noun),
  }
}

/** Its stream begins with its deletion: its content is gone for ever. */
const isErased = ({ createdAt }: ResourceState): boolean => createdAt === ''

/** Whether a create makes something: the record does not exist, or its id is derived and it was deleted. */
export const canBeMade = (
  { idFrom }: Pick<ResourceDeclaration, 'idFrom'>,
  { status }: ResourceState,
  values: JsonObject,
): boolean =>
  status === 'absent' || (status === 'deleted' && idFrom !== undefined && values[idFrom.field] !== undefined)

/** Folds one fact of a resource's stream; foreign types leave the state as it is. */
export const evolveResource = (noun: string): ((state: ResourceState, fact: Fact) => ResourceState) => {
  const types = eventTypes(noun)
  return (state, fact) => {
    const data = fact.data as ResourceData
    if (fact.type === types.deleted) return { ...state, status: 'deleted', updatedAt: data.at }
    if (fact.type !== types.created && fact.type !== types.changed) return state
    const first = fact.type === types.created ? { values: data.values, sealed: data.sealed } : state.first
    const { organizationId, values, createdAt } = data
    return { status: 'live', organizationId, values, sealed: data.sealed ?? {}, first, createdAt, updatedAt: data.at }
  }
}
