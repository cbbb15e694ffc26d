import { assertNoFaults, type FieldError } from '../../kernel/errors.ts'
import { assertShown } from '../../kernel/hidden-fields.ts'
import type { JsonObject } from '../../kernel/json.ts'
import {
  bool,
  type Field,
  id,
  lines,
  list,
  newName,
  object,
  optional,
  record,
  reference,
  text,
  withDefault,
} from '../../kernel/schema.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { NAMES_NOTHING } from '../../kit/resource/references.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import {
  FILES,
  hasSamePattern,
  ruleFaults,
  ruleFields,
  VALUE_TYPES,
  type ValueRule,
  type ValueType,
} from '../../kit/values/value-type.ts'
import { DATA_TYPES, type DataTypeRow, hiddenOf } from '../data/views.ts'
import {
  type Component,
  componentsOf,
  type FlowContent,
  FLOWS,
  keptMapping,
  mappedField,
  withFieldNames,
} from './views.ts'

const STEPS_MAX = 50
const COMPONENTS_MAX = 200
const ID = '^[a-zA-Z][a-zA-Z0-9_]{0,49}$'

const component = object({
  id: text({ max: 50, pattern: ID }),
  label: optional(newName({ max: 100 })),
  readOnly: optional({ schema: { type: 'boolean' } }),
  ...ruleFields(VALUE_TYPES),
})

const step = object({
  id: text({ max: 50, pattern: ID }),
  name: newName({ max: 100 }),
  components: list(component, { max: COMPONENTS_MAX }),
})

const dataSource = object({ dataTypeId: id(), mapping: record(text({ max: 64 }), { max: COMPONENTS_MAX }) })

const orNull = ({ schema, ...field }: Field): Field => ({ ...field, schema: { ...schema, type: ['object', 'null'] } })

/** Template of tasks: the values that assignees fill in, and the customer data prefilled. */
export const flow = defineResource({
  noun: 'flow',
  plural: FLOWS,
  tag: 'Flows',
  fields: {
    name: newName({ max: 100 }),
    description: optional(lines({ max: 2_000 })),
    isActive: withDefault(bool(), true),
    steps: list(step, { min: 1, max: STEPS_MAX }),
    dataSource: optional(orNull(dataSource)),
  },
  readOnly: {
    key: optional(text({ max: 50 })),
    needsDataType: { ...withDefault(bool(), false), optional: true },
  },
  internal: { dataTypeIds: list(reference(DATA_TYPES), { max: COMPONENTS_MAX }) },
  permissions: { view: 'view/flow', edit: 'edit/flow' },
  unique: { field: 'name' },
  table: {
    isShared: true,
    indexes: { equality: ['name', 'key', 'isActive'], range: ['name'], text: ['name', 'description'] },
  },
  body: { bytesMax: 1024 * 1024 },
  example: {
    name: 'Delivery of goods',
    steps: [
      {
        id: 'handover',
        name: 'Handover',
        components: [
          { id: 'receiver', type: 'text', label: 'Received by', required: true },
          { id: 'parcels', type: 'number', label: 'Parcels', min: 0 },
          { id: 'photo', type: 'photo', label: 'Photo', filesMax: 5 },
        ],
      },
    ],
  },
  rules: { keep: (write) => kept(write) },
  present: (rows, { services: { tables }, caller, wants }) =>
    wants('dataSource') ? withFieldNames(tables, caller.organizationId, rows) : [...rows],
})

const kept = async (write: WriteContext): Promise<JsonObject> => {
  const { values, before, caller } = write
  const { dataSource: sent, needsDataType: _needs, ...others } = values
  const source = (sent ?? undefined) as FlowContent['dataSource'] | undefined
  const content = { ...values, dataSource: source } as unknown as FlowContent
  // The service copies flows of other organizations: parts that copies lack are required later.
  const isCopied = caller === undefined ? values.needsDataType === true : before?.needsDataType === true
  const faults = structureFaults(write, content, isCopied)
  const mapping: { [componentId: string]: string } = {}
  if (faults.length === 0) faults.push(...(await dataFaults(write, content, mapping)))
  assertNoFaults(faults)
  const needsDataType = isCopied && source === undefined
  const dataTypeIds = [source?.dataTypeId, ...componentsOf(content).map(({ dataTypeId }) => dataTypeId)].flatMap(
    (one) => one?.toLowerCase() ?? [],
  )
  return {
    ...others,
    ...(source !== undefined && {
      dataSource: { dataTypeId: source.dataTypeId.toLowerCase(), mapping },
    }),
    needsDataType,
    dataTypeIds: [...new Set(dataTypeIds)],
  }
}

const structureFaults = ({ before, caller }: WriteContext, content: FlowContent, isCopied: boolean): FieldError[] => {
  const faults: FieldError[] = []
  const known = new Map(
    (before?.steps === undefined ? [] : componentsOf(before as unknown as FlowContent)).map((one) => [one.id, one]),
  )
  const stepIds = new Set<string>()
  const ids = new Set<string>()
  for (const [i, one] of content.steps.entries()) {
    if (stepIds.has(one.id)) faults.push({ path: `/steps/${i}/id`, message: 'is the id of an earlier step' })
    stepIds.add(one.id)
    for (const [j, { id: own, ...rule }] of one.components.entries()) {
      const path = `/steps/${i}/components/${j}`
      if (ids.has(own)) faults.push({ path: `${path}/id`, message: 'is the id of an earlier component' })
      ids.add(own)
      const isMissing = isCopied && rule.type === 'reference' && rule.dataTypeId === undefined
      if (!isMissing)
        faults.push(...ruleFaults(rule, path, caller === undefined || hasSamePattern(rule, known.get(own))))
    }
  }
  if (ids.size > COMPONENTS_MAX)
    faults.push({ path: '/steps', message: `must have at most ${COMPONENTS_MAX} components together` })
  for (const name of Object.keys(content.dataSource?.mapping ?? {}))
    if (!ids.has(name)) faults.push({ path: `/dataSource/mapping/${name}`, message: 'is not the id of a component' })
  return faults
}

/** Checks that data types exist and mapped fields fit; fills `mapping` with the keys of its fields. */
const dataFaults = async (
  { services: { tables }, organizationId, caller, before }: WriteContext,
  content: FlowContent,
  mapping: { [componentId: string]: string },
): Promise<FieldError[]> => {
  const faults: FieldError[] = []
  const typeOf = (dataTypeId: string): Promise<DataTypeRow | undefined> =>
    tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId.toLowerCase())
  for (const [i, { components }] of content.steps.entries())
    for (const [j, { dataTypeId }] of components.entries())
      if (dataTypeId !== undefined && (await typeOf(dataTypeId)) === undefined)
        faults.push({ path: `/steps/${i}/components/${j}/dataTypeId`, message: NAMES_NOTHING })
  const { dataSource: source } = content
  if (source === undefined) return faults
  const type = await typeOf(source.dataTypeId)
  if (type === undefined) return [...faults, { path: '/dataSource/dataTypeId', message: NAMES_NOTHING }]
  const known = (before as FlowContent | undefined)?.dataSource
  const shownBefore = known?.dataTypeId === type._id ? Object.values(known.mapping) : []
  const keysBefore = shownBefore.map((kept) => mappedField(type, kept)?._id)
  const components = new Map(componentsOf(content).map((one) => [one.id, one]))
  for (const [name, said] of Object.entries(source.mapping)) {
    const field = mappedField(type, said)
    const path = `/dataSource/mapping/${name}`
    // A PATCH that leaves the mapping unchanged may keep a removed field.
    if (field === undefined && shownBefore.includes(said)) continue
    // Tasks show mapped fields to everybody: only users who see a field may map it.
    if (field !== undefined && caller !== undefined && !keysBefore.includes(field._id))
      assertShown([...hiddenOf(caller, type)], [field.name])
    if (field === undefined) faults.push({ path, message: `must be the name of a field of ${type.name}` })
    else if (!fits(components.get(name) as Component, field))
      faults.push({ path, message: `must be a field of the type ${components.get(name)?.type}, not ${field.type}` })
    else mapping[name] = keptMapping(field)
  }
  return faults
}

const AS_TEXT: readonly ValueType[] = ['text', 'number', 'date', 'time', 'datetime', 'option']

/** Whether values of a field can be used in a component. */
const fits = (target: ValueRule, field: ValueRule): boolean =>
  // Files belong to the record that they are attached to.
  target.type === field.type && !FILES.includes(field.type)
    ? target.type !== 'reference' || target.dataTypeId === field.dataTypeId
    : (target.type === 'text' || target.type === 'barcode') && AS_TEXT.includes(field.type)
