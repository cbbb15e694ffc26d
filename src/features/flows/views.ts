import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import type { ValueRule } from '../../kit/values/value-type.ts'
import { DATA_TYPES, type DataTypeRow, fieldNamed } from '../data/views.ts'

export const FLOWS = 'flows'

/** A value to fill in for a task. */
export interface Component extends ValueRule {
  id: string
  label?: string
  /** Filled only by the service: from the data source, by its default or an automation. */
  readOnly?: boolean
}

export interface FlowContent {
  name: string
  description?: string
  isActive?: boolean
  needsDataType?: boolean
  steps: { id: string; name: string; components: Component[] }[]
  /** A data type's field for each component that it fills: named in the API, stored by key, so that renames keep it. */
  dataSource?: { dataTypeId: string; mapping: { [componentId: string]: string } }
}

export interface FlowRow extends Row, FlowContent {
  _id: string
  version: number
  key?: string
}

/** Prefix of a field's key; no name begins with it. */
const KEY = '~'

export const keptMapping = ({ _id }: DataTypeRow['fields'][number]): string => KEY + _id

/** Field of a mapping: flows store its id, bodies contain its name. */
export const mappedField = ({ fields }: DataTypeRow, kept: string): DataTypeRow['fields'][number] | undefined =>
  kept.startsWith(KEY) ? fields.find((field) => keptMapping(field) === kept) : fieldNamed(fields, kept)

/** Flows with their mappings in answered form; a removed field fills nothing. */
export const withFieldNames = async <R extends Row>(
  tables: Pick<TableStore, 'getMany'>,
  organizationId: string,
  rows: readonly R[],
): Promise<R[]> => {
  const sourceOf = (row: R): FlowContent['dataSource'] => (row as unknown as FlowContent).dataSource
  const typeIds = [...new Set(rows.flatMap((row) => sourceOf(row)?.dataTypeId ?? []))]
  if (typeIds.length === 0) return [...rows]
  const found = await tables.getMany<DataTypeRow>(DATA_TYPES, organizationId, typeIds)
  const types = new Map(typeIds.map((id, i) => [id, found[i]]))
  return rows.map((row) => {
    const source = sourceOf(row)
    const type = source && types.get(source.dataTypeId)
    if (source === undefined || type === undefined) return row
    const named = Object.entries(source.mapping).map(([id, kept]) => [id, mappedField(type, kept)?.name])
    const mapping = Object.fromEntries(named.filter(([, name]) => name !== undefined))
    return { ...row, dataSource: { ...source, mapping } }
  })
}

const ofSteps = new WeakMap<FlowContent['steps'], readonly Component[]>()

/** Cached by the steps of a flow: each new task asks several times. */
export const componentsOf = ({ steps }: Pick<FlowContent, 'steps'>): readonly Component[] => {
  const known = ofSteps.get(steps) ?? steps.flatMap(({ components }) => components)
  ofSteps.set(steps, known)
  return known
}

/** A flow at a version, read-only: tasks keep the version that they were created with, even if the flow is deleted. */
export const flowAt = async (
  log: Pick<EventLog, 'read'>,
  flowId: string,
  version: number,
): Promise<FlowContent | undefined> => {
  const known = versions.get(log) ?? new RecentMap<string, FlowContent>(KEPT)
  versions.set(log, known)
  const key = `${flowId}:${version}`
  const kept = known.get(key)
  if (kept !== undefined) return kept
  const [event] = await log.read(`flow-${flowId}`, version - 1, 1)
  if (event?.revision !== version - 1) return undefined
  const content = decodeJson<ResourceData>(event.data).values as unknown as FlowContent
  if (event.data.byteLength <= KEPT_BYTES_MAX) known.set(key, content)
  return content
}

/** Versions never change: recently requested ones are cached, by log. */
const versions = new WeakMap<object, RecentMap<string, FlowContent>>()
const KEPT = 200
const KEPT_BYTES_MAX = 64 * 1024

/** A flow of another organization as the body of a copy, without references to that organization's records. */
export const copiedFlow = ({
  name,
  description,
  isActive,
  steps,
  dataSource,
  needsDataType,
}: FlowContent): JsonObject => {
  const bare = steps.map((step) => ({ ...step, components: step.components.map(withoutDataType) }))
  const isLacking = needsDataType === true || dataSource !== undefined || JSON.stringify(bare) !== JSON.stringify(steps)
  return {
    name,
    ...(description !== undefined && { description }),
    ...(isActive !== undefined && { isActive }),
    steps: bare as unknown as Json,
    needsDataType: isLacking,
  }
}

const withoutDataType = ({ dataTypeId: _dataTypeId, ...component }: Component): Component => component
