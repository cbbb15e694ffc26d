import type { Fact, RecordedEvent } from '../../kernel/event.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { eventTypes, idOfStream, rowOf, type ResourceData } from '../commands/declared-event.ts'
import type { Projection, Rows } from '../consumers/projection.ts'
import type { ResourceDeclaration } from './declaration.ts'

export interface ResourceState {
  status: 'absent' | 'live' | 'deleted'
  organizationId: string
  values: JsonObject
  sealed: { [field: string]: string }
  /** What the first create said, to recognise its repetition. */
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

/** Folds one fact of a resource's stream; types that are not its own leave the state as it is. */
export const evolveResource =
  (noun: string) =>
  (state: ResourceState, fact: Fact): ResourceState => {
    const types = eventTypes(noun)
    const data = fact.data as ResourceData
    if (fact.type === types.deleted) return { ...state, status: 'deleted', updatedAt: data.at }
    if (fact.type !== types.created && fact.type !== types.changed) return state
    const first = fact.type === types.created ? { values: data.values, sealed: data.sealed } : state.first
    const { organizationId, values, createdAt } = data
    return { status: 'live', organizationId, values, sealed: data.sealed ?? {}, first, createdAt, updatedAt: data.at }
  }

export const tableOf = (declaration: ResourceDeclaration): TableDeclaration => {
  const { equality = [], range = [], text = [] } = declaration.indexes ?? {}
  const hubField = declaration.hubField === undefined ? [] : [declaration.hubField]
  return {
    name: declaration.plural,
    version: declaration.version ?? 1,
    equality: [...new Set(['_id', ...equality, ...hubField])],
    range: [...new Set(['createdAt', 'updatedAt', ...range])],
    text,
  }
}

/** The part of a projection that keeps the table of a resource. */
export type RowSource = Pick<Projection, 'tables' | 'prefixes' | 'inputs' | 'apply'>

export const rowSource = (declaration: ResourceDeclaration): RowSource => {
  const { created, changed, deleted } = eventTypes(declaration.noun)
  return {
    tables: [tableOf(declaration)],
    prefixes: [`${declaration.noun}-`],
    inputs: [created, changed, deleted],
    apply: (event, rows) => {
      if (event.type === created || event.type === changed) putRow(declaration.plural, event, rows)
      else if (event.type === deleted)
        rows.delete(declaration.plural, decodeJson<ResourceData>(event.data).organizationId, idOfStream(event.stream))
    },
  }
}

const putRow = (table: string, event: RecordedEvent, rows: Rows): void => {
  const data = decodeJson<ResourceData>(event.data)
  const id = idOfStream(event.stream)
  rows.put(table, data.organizationId, id, rowOf(id, event.revision + 1, { ...data, updatedAt: data.at }))
}
