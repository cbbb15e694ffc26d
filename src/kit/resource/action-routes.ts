import type { JsonObject } from '../../kernel/json.ts'
import { objectSchema } from '../../kernel/schema.ts'
import { userOf } from '../http/request-context.ts'
import { route, type Route } from '../http/route.ts'
import { idParameter, rowAnswer, toldAnswer } from './answers.ts'
import type { ResourceAction } from './declaration.ts'
import { withDefaults } from './pick.ts'
import { one, type Served, written } from './served.ts'
import { findRow } from './show.ts'
import type { ResourceWriter } from './write.ts'
import { originOf } from './writes.ts'

export const actionRoute = (served: Served, action: ResourceAction): Route => {
  const { declaration, services, writes } = served
  return route<object, JsonObject>({
    ...one(declaration, 'POST', 'read', action.permission ?? declaration.permissions.edit, `/${action.path}`),
    operationId: action.operationId,
    summary: action.summary,
    ...(action.body !== undefined && {
      body: objectSchema(action.body),
      bodyExample: action.bodyExample,
      bodyRequired: Object.values(action.body).some(({ optional }) => optional !== true),
    }),
    answers: { 200: action.answer ?? rowAnswer(declaration) },
    handler: async (request) => {
      const row = await findRow(declaration, services, request, request.params[idParameter(declaration)])
      const origin = { ...originOf(request), caller: userOf(request) }
      const body = action.body === undefined ? {} : withDefaults(action.body, request.body ?? {})
      const done = await action.run({ request, body, origin, id: row._id as string, row, writes, services })
      return 'row' in done ? written(served, request, done) : done
    },
  })
}

/** Replaces the secret that was shown with another one. */
export const rotationRoute = (served: Served, writer: ResourceWriter): Route => {
  const { declaration, services } = served
  const { path = '', operationId = '', summary = '' } = declaration.secrets?.told?.rotation ?? {}
  return route({
    ...one(declaration, 'POST', 'read', declaration.permissions.edit, `/${path}`),
    operationId,
    summary,
    answers: { 200: toldAnswer(declaration) },
    handler: async (request) => {
      const row = await findRow(declaration, services, request, request.params[idParameter(declaration)])
      return written(served, request, await writer.rotate(originOf(request), row._id as string))
    },
  })
}
