import type { JsonObject } from '../../kernel/json.ts'
import { anyObject, objectSchema, text } from '../../kernel/schema.ts'
import { envelope } from '../../kit/http/page-members.ts'
import type { Route } from '../../kit/http/route.ts'
import { rowAnswer } from '../../kit/resource/answers.ts'
import type { ResourceAction, ResourceServices } from '../../kit/resource/declaration.ts'
import type { CheckOptions } from './check-automation.ts'
import { automationResource } from './declaration.ts'
import type { AutomationRow } from './views.ts'
import { AutomationWriter } from './write-automation.ts'

/** What a dry run would have sent. */
export interface DryRun {
  url: string
  headers: { [name: string]: string }
  body: unknown
}

export interface AutomationApiOptions extends ResourceServices, Omit<CheckOptions, 'tables'> {
  /** Renders the request of an automation for a sample event, without sending it. */
  dryRun: (automation: AutomationRow, now: number) => Promise<DryRun>
}

/** List, read, create, replace, amend, delete, dry run and rotation of the secret. */
export const automationRoutes = (options: AutomationApiOptions): Route[] => {
  const writes = new AutomationWriter(options.log, options.keyring, options)
  return automationResource.routes(options, { writes, actions: [rotation(writes), dryRun(options)] })
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
  summary: 'A dry run on a sample event: answers the request that would go out, and sends nothing',
  answer: {
    description: 'What would be sent.',
    schema: envelope({
      data: objectSchema({
        isSent: { schema: { const: false } },
        method: { schema: { const: 'POST' } },
        url: text({ max: 2_048 }),
        headers: anyObject(),
        body: anyObject(),
      }),
    }),
  },
  run: async ({ row, request }) => {
    const { url, headers, body } = await options.dryRun(row as AutomationRow, request.now)
    return { body: { data: { isSent: false, method: 'POST', url, headers, body } as JsonObject } }
  },
})
