import { Failure, invalid } from '../../kernel/errors.ts'
import { anyObject, list, newName, oneOf, optional, record, reference, text, withDefault } from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { DATA_TYPES } from '../data/views.ts'
import { EXPORT_FORMATS } from './events.ts'

/** What somebody wants in their exports, kept under a name. */
export const exportConfig = defineResource({
  noun: 'exportConfig',
  plural: 'exportConfigs',
  paths: { one: '/export-config', many: '/export-configs' },
  tag: 'Export',
  fields: {
    name: newName({ max: 100 }),
    target: oneOf('data', 'task'),
    dataTypeId: optional(reference(DATA_TYPES)),
    fields: withDefault(list(text({ max: 200 }), { max: 500, unique: true }), []),
    mapping: withDefault(record(text({ max: 200 }), { max: 500 }), {}),
    filter: withDefault(anyObject(), {}),
    format: withDefault(oneOf(...EXPORT_FORMATS), 'csv'),
  },
  permissions: { view: 'view/export-config', edit: 'edit/export-config' },
  table: { indexes: { equality: ['name', 'target', 'format'], range: ['name'], text: ['name'] } },
  example: {
    name: 'Customers with phones',
    target: 'data',
    dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
    fields: ['number', 'name'],
    mapping: { number: 'Customer no.' },
    filter: {},
    format: 'xlsx',
  },
  rules: {
    checks: async ({ values }) => {
      if (values.target === 'data' && values.dataTypeId === undefined) throw invalid('/dataTypeId', 'is required')
      if (values.target === 'task' && values.dataTypeId !== undefined)
        throw new Failure('invalid', {
          message: '/dataTypeId is for data only',
          errors: [{ path: '/dataTypeId', message: 'is for data only' }],
        })
    },
  },
})
