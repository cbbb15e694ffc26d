import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { id, optional } from '../../kernel/schema.ts'
import { envelope } from '../../kit/http/page-members.ts'
import type { Route } from '../../kit/http/route.ts'
import { rowAnswer } from '../../kit/resource/answers.ts'
import type { ResourceAction, ResourceServices } from '../../kit/resource/declaration.ts'
import type { CheckOptions } from './check-automation.ts'
import type { DryRunAsked } from './dry-run-asked.ts'
import { automationResource, showAutomation } from './declaration.ts'
import { withNotices, type NoticeOptions } from './notice.ts'
import { EVENTS } from './event-table.ts'
import type { AutomationRow } from './views.ts'
import { AutomationWriter } from './write-automation.ts'

export interface AutomationApiOptions
  extends ResourceServices,
    Omit<CheckOptions, keyof ResourceServices>,
    Omit<NoticeOptions, 'tables'> {
  /** Effects of an automation for a sample event, without performing them. @throws Failure invalid */
  dryRun: (automation: AutomationRow, asked: DryRunAsked) => Promise<JsonObject>
}

/** List, read, create, replace, amend, delete, dry run and rotation of the secret. */
export const automationRoutes = (options: AutomationApiOptions): Route[] => {
  const writes = new AutomationWriter(options, options)
  return automationResource.routes(options, {
    writes,
    actions: [rotation(writes), dryRun(options)],
    present: async (rows, { caller, wants }) => {
      const automations = rows as AutomationRow[]
      const noted = wants('notice') ? await withNotices(options, caller.organizationId, automations) : automations
      return noted.map((row) => showAutomation(options, row))
    },
  })
}

const rotation = (writes: AutomationWriter): ResourceAction => ({
  path: 'rotate-secret',
  operationId: 'rotateAutomationSecret',
  summary: 'Make a new signing secret, answered once; the one before signs for 24 hours more',
  answer: rowAnswer(automationResource.declaration),
  run: ({ origin, id }) => writes.rotateSecret(origin, id),
})

const SUBJECTS = { taskId: 'task', recordId: 'record', trackerId: 'tracker' } as const
type SubjectField = keyof typeof SUBJECTS

/** Subject named in place of a sample. @throws Failure invalid if such events never have that subject */
const subjectOf = ({ event }: AutomationRow, body: JsonObject): DryRunAsked['subject'] => {
  const [named, other] = (Object.keys(SUBJECTS) as SubjectField[]).filter((field) => body[field] !== undefined)
  if (named === undefined) return undefined
  if (other !== undefined) throw invalid(`/${other}`, `must not be sent together with ${named}`)
  const { subject } = EVENTS[event]
  if (SUBJECTS[named] !== subject) throw invalid(`/${named}`, `is none of ${event}, which is about a ${subject}`)
  return { field: named, id: String(body[named]).toLowerCase() }
}

const dryRun = (options: AutomationApiOptions): ResourceAction => ({
  path: 'test',
  operationId: 'testAutomation',
  summary: 'A dry run on a sample event: answers what would be done, such as the request that would go out; nothing is',
  body: { taskId: optional(id()), recordId: optional(id()), trackerId: optional(id()) },
  bodyExample: {},
  answer: {
    description: 'What would be done: of a webhook the request, of what is written here the values as they would be.',
    schema: envelope({
      data: {
        type: 'object',
        properties: {
          isSent: { const: false },
          method: { const: 'POST' },
          url: { type: 'string' },
          headers: { type: 'object', description: 'Values of configured headers are `***`.' },
          body: { type: 'object' },
          channel: { type: 'string', enum: ['email', 'chat', 'inApp'], description: 'Of a notification.' },
          to: { type: ['string', 'array'], items: { type: 'string' } },
          subject: { type: 'string' },
          text: { type: 'string' },
          requests: {
            type: 'array',
            description: 'What each chat would be sent.',
            items: {
              type: 'object',
              properties: { url: { type: 'string' }, body: { type: 'object', additionalProperties: true } },
            },
          },
          isDone: { const: false },
          action: { type: 'string', description: 'The type of the automation, of one that writes here.' },
          task: { type: 'object', description: 'The body of the task that would be made.' },
          taskId: { type: 'string', description: 'The task that would be changed.' },
          move: { type: 'object' },
          components: { type: 'object' },
          isNew: { type: 'boolean', description: 'Whether the record would be made, otherwise changed.' },
          dataId: { type: 'string' },
          dataTypeId: { type: 'string' },
          values: { type: 'object' },
        },
      },
    }),
  },
  run: async ({ row, request, body, origin }) => {
    const subject = subjectOf(row as AutomationRow, body)
    const asked = { now: request.now, caller: origin.caller, ...(subject !== undefined && { subject }) }
    return { body: { data: await options.dryRun(row as AutomationRow, asked) } }
  },
})
