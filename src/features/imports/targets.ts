import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { pointerTo } from '../../kernel/json.ts'
import { nameKey } from '../../kit/formats/find-header.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { FILES, type ValueRule } from '../../kit/values/value-type.ts'
import { DATA_TYPES, type DataTypeRow, hiddenOf } from '../data/views.ts'
import { componentsOf, type FlowRow, FLOWS } from '../flows/views.ts'
import type { ImportType } from './events.ts'

/** Target that a column may be mapped onto. */
export interface Target {
  name: string
  label?: string
  rule: ValueRule
}

export interface ImportSubject {
  type: ImportType
  dataTypeId?: string
  flowId?: string
}

const text = { type: 'text' } as const
const number = { type: 'number' } as const
const moment = { type: 'datetime' } as const

/** Columns of a task besides its components. Loads are `load.<dimension>`. */
const TASK_TARGETS: readonly Target[] = [
  { name: 'title', rule: text },
  { name: 'description', rule: text },
  { name: 'hub', rule: text },
  { name: 'team', rule: text },
  { name: 'assignee', rule: text },
  { name: 'lat', label: 'latitude', rule: number },
  { name: 'lng', label: 'longitude', rule: number },
  { name: 'address', rule: text },
  { name: 'window.from', rule: moment },
  { name: 'window.to', rule: moment },
  { name: 'priority', rule: number },
  { name: 'durationMinutes', rule: number },
  { name: 'tags', rule: text },
  { name: 'externalId', rule: text },
]
/** Columns of a visit and of a route: a place in the routing result that `route` names. */
const PLACE_TARGETS: readonly Target[] = [
  { name: 'route', rule: text },
  { name: 'vehicle', rule: text },
  { name: 'sequence', rule: number },
]
const ROUTE_TARGETS: readonly Target[] = [
  { name: 'taskId', rule: text },
  { name: 'externalId', rule: text },
  ...PLACE_TARGETS,
]
const LOAD = /^load\.[^.]{1,50}$/

/** Aliases of targets, such as `hubId`. */
const TASK_ALIASES: { [name: string]: string } = {
  hubId: 'hub',
  teamId: 'team',
  assigneeIds: 'assignee',
  assigneeId: 'assignee',
}
const VISIT_ALIASES: { [name: string]: string } = { ...TASK_ALIASES, vehicleId: 'vehicle' }
const ROUTE_ALIASES: { [name: string]: string } = { _id: 'taskId', id: 'taskId', vehicleId: 'vehicle' }

const ALIASES: { [type in ImportType]: { [name: string]: string } } = {
  datasource: {},
  task: TASK_ALIASES,
  visit: VISIT_ALIASES,
  route: ROUTE_ALIASES,
}

/** Targets that need neither a data type nor a flow. */
export const fixedTargets = (type: ImportType): Target[] => {
  if (type === 'route') return [...ROUTE_TARGETS]
  return hasLoads(type) ? [...TASK_TARGETS, ...(type === 'visit' ? PLACE_TARGETS : [])] : []
}

/** All targets for rows of this kind. @throws Failure invalid for an unknown type or flow */
export const targetsOf = async (
  tables: Pick<TableStore, 'get'>,
  caller: UserCaller,
  { type, dataTypeId, flowId }: ImportSubject,
): Promise<Target[]> => {
  const { organizationId } = caller
  if (type === 'route') return fixedTargets(type)
  if (type === 'datasource') {
    if (dataTypeId === undefined) throw invalid('/dataTypeId', 'is required')
    const found = await assertExists<DataTypeRow>(tables, DATA_TYPES, organizationId, dataTypeId, '/dataTypeId')
    return recordTargets(found, caller)
  }
  if (flowId === undefined) throw invalid('/flowId', 'is required')
  const flow = await assertExists<FlowRow>(tables, FLOWS, organizationId, flowId, '/flowId')
  const own = componentsOf(flow).filter((one) => one.readOnly !== true && !FILES.includes(one.type))
  return [
    ...fixedTargets(type),
    ...own.flatMap((rule) => withPlaces({ name: `components.${rule.id}`, label: rule.label ?? rule.id, rule })),
  ]
}

/** A role that hides a field cannot import it either: an error would reveal its values. */
const recordTargets = (type: DataTypeRow, caller: UserCaller): Target[] => {
  const hidden = hiddenOf(caller, type)
  return type.fields
    .filter((field) => !FILES.includes(field.type) && !hidden.has(field.name))
    .flatMap((rule) => withPlaces({ name: rule.name, ...(rule.label !== undefined && { label: rule.label }), rule }))
}

/** A place may take two columns. */
const withPlaces = (target: Target): Target[] =>
  target.rule.type === 'coordinate'
    ? [target, { name: `${target.name}.lat`, rule: number }, { name: `${target.name}.lng`, rule: number }]
    : [target]

/** The target of a name in a mapping. */
export const targetNamed = (targets: readonly Target[], type: ImportType, said: string): Target | undefined => {
  const name = Object.hasOwn(ALIASES[type], said) ? ALIASES[type][said] : said
  const found = targets.find((one) => one.name === name) ?? targets.find((one) => one.name === `components.${name}`)
  if (found !== undefined || !hasLoads(type)) return found
  return LOAD.test(name) ? { name, rule: number } : undefined
}

const hasLoads = (type: ImportType): boolean => type === 'task' || type === 'visit'

const looseKey = (name: string): string => nameKey(name).replace(/[\s_.-]/g, '')

/** Columns whose names equal a field's name or label, ignoring case. */
export const suggestedMapping = (
  columns: readonly string[],
  targets: readonly Target[],
  type: ImportType,
): { [column: string]: string } => {
  const byKey = new Map<string, string>()
  const add = (key: string | undefined, name: string): void => {
    if (key !== undefined && !byKey.has(looseKey(key))) byKey.set(looseKey(key), name)
  }
  for (const { name } of targets) add(name, name)
  for (const { name, label } of targets) add(label, name)
  for (const { name } of targets) add(name.replace(/^components\./, ''), name)
  for (const [alias, name] of Object.entries(ALIASES[type])) add(alias, name)
  const used = new Set<string>()
  const mapping: { [column: string]: string } = {}
  for (const column of columns) {
    const name = byKey.get(looseKey(column)) ?? (hasLoads(type) && LOAD.test(column) ? column : undefined)
    if (name === undefined || used.has(name)) continue
    used.add(name)
    mapping[column] = name
  }
  return mapping
}

/** The effective form of a sent mapping. @throws Failure invalid for an unknown column or field */
export const checkedMapping = (
  sent: { [column: string]: string },
  columns: readonly string[],
  targets: readonly Target[],
  type: ImportType,
): { [column: string]: string } => {
  const mapping: { [column: string]: string } = {}
  const used = new Set<string>()
  for (const [said, name] of Object.entries(sent)) {
    const column = columns.find((one) => one === said) ?? columns.find((one) => nameKey(one) === nameKey(said))
    const path = `/mapping${pointerTo(said)}`
    if (column === undefined)
      throw invalid(path, `is no column of the file, which has ${columns.slice(0, 20).join(', ')}`)
    const target = targetNamed(targets, type, name)
    if (target === undefined) throw invalid(path, `must name a field that can be written, not ${JSON.stringify(name)}`)
    if (used.has(target.name)) throw invalid(path, `maps a second column onto ${target.name}`)
    used.add(target.name)
    mapping[column] = target.name
  }
  return mapping
}
