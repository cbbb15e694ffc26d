import { isDeepStrictEqual } from 'node:util'
import type { UserCaller } from '../../kernel/caller.ts'
import { assertNoFaults, Failure, invalid } from '../../kernel/errors.ts'
import { assertShown } from '../../kernel/hidden-fields.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import {
  type Field,
  integer,
  list,
  newName,
  object,
  oneOf,
  optional,
  reference,
  text,
  withDefault,
} from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import { normalized } from '../../kernel/text.ts'
import type { PresentContext, WriteContext } from '../../kit/resource/declaration.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { hasSamePattern, ruleFields } from '../../kit/values/value-type.ts'
import { FIELD_TYPES, fieldsFaults, keptFields, type SentField, type StoredField } from './fields.ts'
import { CHECKS, DATA_TYPES, type CheckRow, type DataTypeRow, hiddenOf, RECORDS } from './views.ts'

const FIELDS_MAX = 200
const TYPES_MAX = 500

/** Letters of any script, digits, spaces, _ and -, so that names can be used in queries, paths and templates. */
const FIELD_NAME = '^[\\p{L}][\\p{L}\\p{M}\\p{N}_ -]{0,49}$'

const described = (field: Field, description: string): Field => ({ ...field, schema: { ...field.schema, description } })

const field = object({
  _id: optional(
    described(
      text({ max: 60 }),
      'The field as it was read: with it, a field that has another name now keeps its values.',
    ),
  ),
  name: newName({ max: 50, pattern: FIELD_NAME }),
  label: optional(newName({ max: 100 })),
  unique: optional({ schema: { type: 'boolean' } }),
  ...ruleFields(FIELD_TYPES),
})

/** Type of records. Its rows are stored like those of every resource; its records read them. */
export const dataType = defineResource({
  noun: 'dataType',
  plural: DATA_TYPES,
  table: {
    isShared: true,
    indexes: { equality: ['name', 'type', 'nameKey'], range: ['name'], text: ['name'] },
    derived: ({ name }) => ({ nameKey: nameKey(name as string) }),
  },
  tag: 'Data',
  paths: { one: '/data-type', many: '/data-types' },
  fields: {
    name: newName({ max: 100 }),
    type: withDefault(
      described(text({ max: 50 }), '`customer`, `product`, `employee`, `other`, or a word of your own.'),
      'other',
    ),
    primaryKey: described(text({ max: 50 }), 'The name of a text or number field; its values are required and unique.'),
    fields: list(field, { min: 1, max: FIELDS_MAX }),
  },
  readOnly: {
    check: withDefault(
      object({ state: oneOf('running', 'done'), records: integer({ min: 0 }), invalid: integer({ min: 0 }) }),
      { state: 'done', records: 0, invalid: 0 },
    ),
  },
  internal: {
    dataTypeIds: list(reference(DATA_TYPES), { max: FIELDS_MAX }),
    /** Highest number assigned to a field so far. */
    lastNo: integer({ min: 0 }),
  },
  permissions: { view: 'view/data-type', edit: 'edit/data-type' },
  unique: { field: 'name' },
  body: { bytesMax: 1024 * 1024 },
  example: {
    name: 'Customers',
    type: 'customer',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text', pattern: '^C-[0-9]+$' },
      { name: 'name', label: 'Name', type: 'text', required: true },
      { name: 'phone', type: 'text', max: 30 },
      { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
      { name: 'place', type: 'coordinate' },
    ],
  },
  rules: {
    keep: (write) => kept(write),
    merge: (before, patch) =>
      mergePatch(
        { ...before, fields: (before.fields as unknown as StoredField[]).map(shownField) as unknown as Json },
        patch,
      ),
  },
  present: (rows, context) => withCheck(rows, context),
})

/** Names of types are compared without case. */
export const nameKey = (name: string): string => normalized(name).trim().toLowerCase()

const kept = async (write: WriteContext): Promise<JsonObject> => {
  const { id, values, before, caller } = write
  const sent = values.fields as unknown as SentField[]
  const lastNo = Number(before?.lastNo ?? 0)
  const own = (before?.fields ?? []) as unknown as StoredField[]
  const fields = keptFields(sent, own, lastNo)
  const primaryKey = renamedKey(fields, values.primaryKey as string)
  const isKept = (at: number): boolean =>
    caller === undefined ||
    hasSamePattern(
      fields[at],
      own.find(({ _id }) => _id === fields[at]._id),
    )
  const faults = fieldsFaults(sent, primaryKey, isKept)
  assertNoFaults(faults)
  if (caller !== undefined && before !== undefined) assertHiddenKept(caller, id, before, fields, primaryKey)
  await assertReferences(write, fields)
  const dataTypeIds = [...new Set(fields.flatMap(({ dataTypeId }) => dataTypeId?.toLowerCase() ?? []))]
  return {
    ...values,
    primaryKey,
    fields: fields as unknown as Json,
    dataTypeIds: dataTypeIds.filter((one) => one !== id),
    lastNo: Math.max(lastNo, ...fields.map(({ no }) => no)),
  }
}

/** Custom rules could reveal a hidden value by the records that they make invalid. @throws Failure forbidden */
const assertHiddenKept = (
  caller: UserCaller,
  _id: string,
  before: JsonObject,
  fields: readonly StoredField[],
  primaryKey: string,
): void => {
  const own = before.fields as unknown as StoredField[]
  const hidden = hiddenOf(caller, { _id, fields: own })
  const changed = own.filter((field) => {
    const next = fields.find((one) => one._id === field._id)
    if (next === undefined || (next.name === primaryKey) !== (field.name === before.primaryKey)) return true
    return !isDeepStrictEqual(rulesOf(next), rulesOf(field))
  })
  assertShown(
    [...hidden],
    changed.map(({ name }) => name),
  )
}

const rulesOf = ({ name: _name, label: _label, formerNames: _former, slot: _slot, ...rules }: StoredField): Row => rules

/** The primary key follows a rename of its field. */
const renamedKey = (fields: readonly StoredField[], primaryKey: string): string =>
  fields.some(({ name }) => name === primaryKey)
    ? primaryKey
    : (fields.find(({ formerNames }) => formerNames?.includes(primaryKey))?.name ?? primaryKey)

/** Checks that referenced types exist and that no record requires another one of its own type before it. */
const assertReferences = async (
  { services: { tables }, organizationId, id, before }: WriteContext,
  fields: readonly StoredField[],
): Promise<void> => {
  const { total = 0 } = await tables.find(DATA_TYPES, organizationId, { limit: 1, total: true })
  if (before === undefined && total >= TYPES_MAX)
    throw new Failure('conflict', { message: `An organization has at most ${TYPES_MAX} data types.` })
  for (const [i, { dataTypeId, required }] of fields.entries()) {
    if (dataTypeId === undefined) continue
    const path = `/fields/${i}/dataTypeId`
    const isOwn = dataTypeId === id
    if (!isOwn) await assertExists(tables, DATA_TYPES, organizationId, dataTypeId, path)
    if (required === true && (isOwn || (await needs(tables, organizationId, dataTypeId, id))))
      throw invalid(path, 'must not be required: the references would go round in a circle without a first record')
  }
}

/** Whether a record of one type requires a record of the other, through any number of required references. */
const needs = async (
  tables: WriteContext['services']['tables'],
  organizationId: string,
  from: string,
  target: string,
): Promise<boolean> => {
  const seen = new Set([from])
  for (const dataTypeId of seen) {
    const row = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId)
    for (const one of row?.fields ?? []) {
      if (one.dataTypeId === undefined || one.required !== true) continue
      if (one.dataTypeId === target) return true
      seen.add(one.dataTypeId)
    }
  }
  return false
}

/** Adds the progress of the check of records; removes members of fields that are stored only for records. */
const withCheck = async (
  rows: readonly Row[],
  { services: { tables }, caller, wants }: PresentContext,
): Promise<Row[]> => {
  const scope = caller.organizationId
  const shown = rows.map((row) => ({ ...row, fields: (row.fields as StoredField[]).map(shownField) }))
  if (!wants('check')) return shown
  const count = async (where: { [field: string]: string | boolean }): Promise<number> =>
    (await tables.find(RECORDS, scope, { where, limit: 1, total: true })).total ?? 0
  return Promise.all(
    shown.map(async (row) => {
      const { _id, version } = row as unknown as DataTypeRow
      const check = await tables.get<CheckRow>(CHECKS.name, scope, _id)
      // The answer to a change is built before the tables have it.
      const isYetToBegin = version > (check?.version ?? 1)
      const state = check?.isRunning === true || isYetToBegin ? 'running' : 'done'
      return {
        ...row,
        check: {
          state,
          records: await count({ dataTypeId: _id }),
          invalid: await count({ dataTypeId: _id, isInvalid: true }),
        },
      }
    }),
  )
}

const shownField = ({ no: _no, slot: _slot, formerNames: _formerNames, ...field }: StoredField): Row => ({ ...field })
