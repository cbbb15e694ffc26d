import type { JsonObject } from '../../kernel/json.ts'
import {
  amendSchema,
  createSchema,
  mergePatch,
  pick,
  replaceSchema,
  type ResourceDeclaration,
} from '../../kit/resource/declaration.ts'
import {
  envelope,
  findRow,
  listRoute,
  originOf,
  readRoute,
  rowAnswer,
  rowReply,
  versionOf,
} from '../../kit/resource/routes.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { assertValid, compileCheck, type Check } from '../../kit/http/validate.ts'
import type { CheckOptions } from './check-automation.ts'
import { automationDeclaration, showAutomation } from './declaration.ts'
import type { AutomationRow } from './views.ts'
import { AutomationWriter, type Written } from './write-automation.ts'

/** What a dry run would have sent. */
export interface DryRun {
  url: string
  headers: { [name: string]: string }
  body: unknown
}

export interface AutomationApiOptions
  extends Pick<Services, 'log' | 'tables' | 'keyring'>,
    Omit<CheckOptions, 'tables'> {
  /** Renders the request of an automation for a sample event, without sending it. */
  dryRun: (automation: AutomationRow, now: number) => Promise<DryRun>
}

const EDIT = { permission: 'edit/automation' } as const
const PARAMS = { automationId: { type: 'string', minLength: 1, maxLength: 100 } }
const ONE = '/automation/{automationId}'

/** List, read, create, replace, amend, delete, dry run and rotation of the secret. */
export const automationRoutes = (options: AutomationApiOptions): Route[] => {
  const { log, keyring } = options
  const declaration = automationDeclaration(keyring)
  const writer = new AutomationWriter(log, keyring, options)
  const answers = { 200: rowAnswer(declaration) }
  const check = compileCheck(createSchema(declaration))
  const show = (row: AutomationRow) => showAutomation(keyring, row)
  return [
    listRoute(declaration, options),
    readRoute(declaration, options),
    createRoute(declaration, writer, (written) => answered(show, written, 201)),
    changeRoute(declaration, 'PUT', async (request) => {
      const wanted = withoutShownSecret(pick(request.body, Object.keys(declaration.fields)))
      const written = await writer.change(
        editorOf(request),
        request.params.automationId,
        versionOf(request, request.body),
        () => wanted,
      )
      return answered(show, written)
    }),
    changeRoute(declaration, 'PATCH', async (request) => {
      const patch = withoutShownSecret(pick(request.body, Object.keys(declaration.fields)))
      const written = await writer.change(
        editorOf(request),
        request.params.automationId,
        versionOf(request, request.body),
        (before) => merged(check, before, patch),
      )
      return answered(show, written)
    }),
    route({
      method: 'DELETE',
      path: ONE,
      operationId: 'deleteAutomation',
      summary: 'Delete an automation; what it still owes is skipped',
      tag: declaration.tag,
      access: EDIT,
      params: PARAMS,
      answers: { 200: { description: 'It is deleted.' } },
      handler: async (request) => ({
        wrote: await writer.delete(editorOf(request), request.params.automationId, versionOf(request, undefined)),
      }),
    }),
    route({
      method: 'POST',
      path: `${ONE}/rotate-secret`,
      operationId: 'rotateAutomationSecret',
      tag: declaration.tag,
      access: EDIT,
      params: PARAMS,
      summary: 'Make a new signing secret, answered once; the one before signs for 24 hours more',
      answers,
      handler: async (request) =>
        answered(show, await writer.rotateSecret(editorOf(request), request.params.automationId)),
    }),
    testRoute(declaration, options),
  ]
}

const createRoute = (
  declaration: ResourceDeclaration,
  writer: AutomationWriter,
  answer: (written: Written) => Reply,
): Route =>
  route<object, JsonObject>({
    method: 'POST',
    path: '/automation',
    operationId: 'createAutomation',
    tag: declaration.tag,
    access: EDIT,
    summary: 'Create an automation; that of a webhook answers its signing secret, once',
    body: createSchema(declaration),
    bodyExample: declaration.example,
    answers: { 201: rowAnswer(declaration) },
    handler: async (request) => answer(await writer.create(editorOf(request), request.body)),
  })

const changeRoute = (
  declaration: ResourceDeclaration,
  method: 'PUT' | 'PATCH',
  handler: (request: RouteRequest<object, JsonObject>) => Promise<Reply>,
): Route =>
  route<object, JsonObject>({
    method,
    path: ONE,
    operationId: method === 'PUT' ? 'replaceAutomation' : 'amendAutomation',
    summary: method === 'PUT' ? 'Replace an automation' : 'Amend an automation',
    tag: declaration.tag,
    access: EDIT,
    params: PARAMS,
    body: method === 'PUT' ? replaceSchema(declaration) : amendSchema(declaration),
    bodyExample: method === 'PUT' ? declaration.example : { isActive: false },
    answers: { 200: rowAnswer(declaration) },
    handler,
  })

const testRoute = (declaration: ResourceDeclaration, options: AutomationApiOptions): Route =>
  route({
    method: 'POST',
    path: `${ONE}/test`,
    operationId: 'testAutomation',
    tag: declaration.tag,
    access: EDIT,
    params: PARAMS,
    summary: 'A dry run on a sample event: answers the request that would go out, and sends nothing',
    answers: {
      200: {
        description: 'What would be sent.',
        schema: envelope({
          data: {
            type: 'object',
            properties: {
              isSent: { const: false },
              method: { const: 'POST' },
              url: { type: 'string' },
              headers: { type: 'object' },
              body: { type: 'object' },
            },
          },
        }),
      },
    },
    handler: async (request) => {
      const row = (await findRow(declaration, options, request, request.params.automationId)) as AutomationRow
      const { url, headers, body } = await options.dryRun(row, request.now)
      return { body: { data: { isSent: false, method: 'POST', url, headers, body } } }
    },
  })

const editorOf = (request: Parameters<typeof originOf>[0]) => ({ ...originOf(request), caller: userOf(request) })

const answered = (
  show: (row: AutomationRow) => ReturnType<typeof showAutomation>,
  { row, wrote, secret }: Written,
  status = 200,
): Reply => {
  const data = show(row)
  if (secret === undefined) return rowReply(data, row, wrote, status)
  return {
    ...rowReply({ ...data, automationDetails: { ...(data.automationDetails as object), secret } }, row, wrote, status),
    secret: true,
  }
}

/** RFC 7396 over the whole automation; what it makes must be whole again. */
const merged = (check: Check, before: JsonObject, patch: JsonObject): JsonObject => {
  const wanted = mergePatch(before, patch) as JsonObject
  assertValid(check, wanted)
  return wanted
}

/** The secret was answered in the details once; who writes back what was answered does not set it. */
const withoutShownSecret = (body: JsonObject): JsonObject => {
  const { automationDetails } = body
  if (typeof automationDetails !== 'object' || automationDetails === null || Array.isArray(automationDetails))
    return body
  const { secret: _shown, ...details } = automationDetails
  return { ...body, automationDetails: details }
}
