import type { JsonObject } from '../../kernel/json.ts'
import { envelope } from '../../kit/http/page-members.ts'
import type { Route } from '../../kit/http/route.ts'
import { rowAnswer } from '../../kit/resource/answers.ts'
import type { ResourceAction, ResourceServices } from '../../kit/resource/declaration.ts'
import type { CheckOptions } from './check-automation.ts'
import { automationResource, showAutomation } from './declaration.ts'
import { withNotices, type NoticeOptions } from './notice.ts'
import type { AutomationRow } from './views.ts'
import { AutomationWriter } from './write-automation.ts'

export interface AutomationApiOptions
  extends ResourceServices,
    Omit<CheckOptions, keyof ResourceServices>,
    Omit<NoticeOptions, 'tables'> {
  /** What an automation would do for a sample event; nothing is done. */
  dryRun: (automation: AutomationRow, now: number) => Promise<JsonObject>
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

const dryRun = (options: AutomationApiOptions): ResourceAction => ({
  path: 'test',
  operationId: 'testAutomation',
  summary: 'A dry run on a sample event: answers what would be done, such as the request that would go out; nothing is',
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
  run: async ({ row, request }) => ({ body: { data: await options.dryRun(row as AutomationRow, request.now) } }),
})
