import { Failure, invalid } from '../../kernel/errors.ts'
import {
  anyObject,
  email,
  id,
  list,
  newName,
  object,
  oneOf,
  optional,
  record,
  reference,
  text,
  time,
  timeZone,
  withDefault,
} from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { DATA_TYPES } from '../data/views.ts'
import { repeat } from '../../kit/recurrence/repeat.ts'
import { EXPORT_FORMATS, type ExportKind } from './events.ts'
import { withCurrentNames } from './current-names.ts'
import { assertMayExport } from './question.ts'
import { keptSchedule, waitingExports } from './export-schedule.ts'

/** Most addresses that get the link of one export. */
const EMAILS_MAX = 20

/** Named settings of exports. The exports of its schedule are requested by reactors/exports. */
export const exportConfig = defineResource(
  {
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
      schedule: optional(
        object({
          rrule: optional(text({ max: 500 })),
          repeat: optional(repeat),
          timeZone: timeZone(),
          emails: withDefault(list(email(), { max: EMAILS_MAX, unique: true }), []),
        }),
      ),
    },
    readOnly: { nextAt: optional(time()), scheduledBy: optional(id()), notice: optional(text({ max: 1_000 })) },
    internal: { scheduledAt: optional(time()) },
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
      schedule: {
        repeat: { period: 'weekly', every: 1, weekdays: ['mon'], at: '06:00' },
        timeZone: 'Europe/Warsaw',
        emails: ['ada@example.com'],
      },
    },
    present: (rows, { services: { tables }, caller }) =>
      Promise.all(rows.map((row) => withCurrentNames(tables, caller.organizationId, row))),
    rules: {
      keep: async (write) => keptSchedule(write),
      checks: async ({ caller, values }) => {
        if (values.schedule !== undefined && caller !== undefined) assertMayExport(caller, values.target as ExportKind)
        if (values.target === 'data' && values.dataTypeId === undefined) throw invalid('/dataTypeId', 'is required')
        if (values.target === 'task' && values.dataTypeId !== undefined)
          throw new Failure('invalid', {
            message: '/dataTypeId is for data only',
            errors: [{ path: '/dataTypeId', message: 'is for data only' }],
          })
      },
    },
  },
  waitingExports,
)
