import type { Find, TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { ListConditions } from '../../kit/http/answer-list.ts'
import { ABSENT_VALUE, LIMIT_MAX, type ListQuery } from '../../kit/http/list-query.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { askedValues } from '../../kit/values/asked-values.ts'
import type { ValueType } from '../../kit/values/value-type.ts'
import { componentsOf, type FlowRow, FLOWS } from '../flows/views.ts'

const COMPONENTS = 'components.'
const FILTERED: readonly ValueType[] = ['text', 'barcode', 'option', 'reference']

/** Parameters that filter tasks by what is filled in. */
export const COMPONENT_PARAMETERS: { [pattern: string]: JsonSchema } = {
  '^components\\.[a-zA-Z]': {
    type: 'array',
    minItems: 1,
    maxItems: LIMIT_MAX,
    items: { type: 'string', minLength: 1, maxLength: 10_000 },
    description:
      'With one `flowId`: tasks in which this component, a text, barcode, option or reference, has this value. Several: any of them, repeated; options and references also separated by commas. `null`: those without one.',
  },
}

/** What a task is found by for each text among its components. */
export const componentTermsOf = (components: JsonObject): string[] =>
  Object.entries(components).flatMap(([id, value]) => (typeof value === 'string' ? [termOf(id, value)] : []))

const termOf = (id: string, value: Json): string => `${id}=${value}`

/** What `?components.<id>=` asks for. @throws Failure invalid */
export const componentConditions = async (
  tables: Pick<TableStore, 'get'>,
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
  const filters = asked.map(([name, texts]) => filterOf(flow, name, texts as string[]))
  const absent = filters.filter(({ isAbsent }) => isAbsent)
  const groups = filters.flatMap(({ isAbsent, terms }) => (isAbsent ? [] : [terms]))
  return {
    ...(groups.length > 0 && { every: { componentTerms: groups } satisfies Find['every'] }),
    ...(absent.length > 0 && { keep: (row: Row) => absent.every((one) => lacksOrHas(row, one)) }),
  }
}

interface ComponentFilter {
  componentId: string
  terms: string[]
  /** Tasks without a value are meant too. */
  isAbsent: boolean
}

const filterOf = (flow: FlowRow, name: string, texts: readonly string[]): ComponentFilter => {
  const componentId = name.slice(COMPONENTS.length)
  const component = componentsOf(flow).find((one) => one.id === componentId)
  if (component === undefined) throw invalid(`/${name}`, 'names no component of the flow')
  if (!FILTERED.includes(component.type)) throw invalid(`/${name}`, `cannot be filtered by: it is a ${component.type}`)
  const { values, isAbsent } = askedValues(component, texts, `/${name}`)
  return { componentId, terms: values.map((value) => termOf(componentId, value)), isAbsent }
}

const lacksOrHas = (row: Row, { componentId, terms }: ComponentFilter): boolean => {
  const value = (row.components as JsonObject)[componentId]
  return value === undefined || (typeof value === 'string' && terms.includes(termOf(componentId, value)))
}
