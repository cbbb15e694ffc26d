import type { Find, TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { ListConditions } from '../../kit/http/answer-list.ts'
import { ABSENT_VALUE, LIMIT_MAX, limitsOf, type ListQuery } from '../../kit/http/list-query.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { askedValues, assertKnown } from '../../kit/values/asked-values.ts'
import type { ValueType } from '../../kit/values/value-type.ts'
import { componentsOf, type FlowRow, FLOWS } from '../flows/views.ts'
import { TASK_AUDIENCE, TASKS } from './views.ts'

const COMPONENTS = 'components.'
const FILTERED: readonly ValueType[] = ['text', 'barcode', 'option', 'reference']

/** Parameters that filter tasks by component values. */
export const COMPONENT_PARAMETERS: { [pattern: string]: JsonSchema } = {
  '^components\\.[a-zA-Z]': {
    type: 'array',
    minItems: 1,
    maxItems: LIMIT_MAX,
    items: { type: 'string', minLength: 1, maxLength: 10_000 },
    description:
      'With one `flowId`: tasks in which this component, a text, barcode, option or reference, has this value. Several: any of them, repeated; options and references also separated by commas; what is no option is 400. `null`: those without one.',
  },
}

/** Terms that find a task by the texts among its components. */
export const componentTermsOf = (components: JsonObject): string[] =>
  Object.entries(components).flatMap(([id, value]) => (typeof value === 'string' ? [termOf(id, value)] : []))

const termOf = (id: string, value: Json): string => `${id}=${value}`

/** Conditions of `?components.<id>=`. @throws Failure invalid */
export const componentConditions = async (
  tables: Pick<TableStore, 'get' | 'find'>,
  caller: UserCaller,
  query: ListQuery,
): Promise<Pick<ListConditions, 'every' | 'keep'>> => {
  const asked = Object.entries(query).filter(([name, value]) => name.startsWith(COMPONENTS) && value !== undefined)
  if (asked.length === 0) return {}
  const [flowId, ...others] = [query.flowId ?? []].flat() as string[]
  if (flowId === undefined || others.length > 0 || flowId === ABSENT_VALUE)
    throw invalid('/flowId', 'must name one flow where components are asked for')
  const id = flowId.toLowerCase()
  const flow = await assertExists<FlowRow>(tables, FLOWS, caller.organizationId, id, '/flowId')
  const isHeld = heldIn(tables, caller, id)
  const filters = await Promise.all(asked.map(([name, texts]) => filterOf(flow, name, texts as string[], isHeld)))
  const absent = filters.filter(({ isAbsent }) => isAbsent)
  const groups = filters.flatMap(({ isAbsent, terms }) => (isAbsent ? [] : [terms]))
  return {
    ...(groups.length > 0 && { every: { componentTerms: groups } satisfies Find['every'] }),
    ...(absent.length > 0 && { keep: (row: Row) => absent.every((one) => lacksOrHas(row, one)) }),
  }
}

type IsHeld = (term: string) => Promise<boolean>

/** Whether a visible task of the flow has a term: tasks keep the options from the time of their creation. */
const heldIn = (tables: Pick<TableStore, 'find'>, caller: UserCaller, flowId: string): IsHeld => {
  const limits = Object.fromEntries(limitsOf(caller, { hubField: 'hubId', audience: TASK_AUDIENCE }))
  return async (term) => {
    const where = { flowId, componentTerms: term, ...limits }
    return (await tables.find(TASKS, caller.organizationId, { where, limit: 1 })).rows.length > 0
  }
}

interface ComponentFilter {
  componentId: string
  terms: string[]
  /** Also matches tasks without a value. */
  isAbsent: boolean
}

const filterOf = async (
  flow: FlowRow,
  name: string,
  texts: readonly string[],
  isHeld: IsHeld,
): Promise<ComponentFilter> => {
  const componentId = name.slice(COMPONENTS.length)
  const component = componentsOf(flow).find((one) => one.id === componentId)
  if (component === undefined) throw invalid(`/${name}`, 'names no component of the flow')
  if (!FILTERED.includes(component.type)) throw invalid(`/${name}`, `cannot be filtered by: it is a ${component.type}`)
  const { values, isAbsent, strange } = askedValues(component, texts, `/${name}`)
  await assertKnown(component, strange, `/${name}`, (value) => isHeld(termOf(componentId, value)))
  return { componentId, terms: values.map((value) => termOf(componentId, value)), isAbsent }
}

const lacksOrHas = (row: Row, { componentId, terms }: ComponentFilter): boolean => {
  const value = (row.components as JsonObject)[componentId]
  return value === undefined || (typeof value === 'string' && terms.includes(termOf(componentId, value)))
}
