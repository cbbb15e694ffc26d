import { invalid } from '../../kernel/errors.ts'
import { optional, text } from '../../kernel/schema.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { chooseFields, listQuerySchema } from '../../kit/http/list-query.ts'
import { createSchema, rowSchema } from '../../kit/resource/declaration.ts'
import {
  amendRoute,
  deleteRoute,
  envelope,
  findRow,
  listAnswer,
  originOf,
  readRoute,
  replaceRoute,
  rowReply,
} from '../../kit/resource/routes.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { createdTracker, trackerDeclaration } from './declaration.ts'
import {
  declaredShape,
  listTrackers,
  withStatus,
  type TrackerListQuery,
  type TrackerListServices,
} from './tracker-list.ts'
import { forgotten, type TrackerWriter } from './tracker-writer.ts'
import type { TableStore } from '../../engines/table-store.ts'

export interface TrackerApiServices extends TrackerListServices {
  tables: TableStore
  writer: TrackerWriter
  /** Number of partitions of the log. */
  partitions: number
}

export const trackerRoutes = (services: TrackerApiServices): Route[] => [
  listRoute(services),
  withLastSeen(services, readRoute(trackerDeclaration, services)),
  createRoute(services),
  withLastSeen(services, guarded(services, replaceRoute(trackerDeclaration, services.writer.resource))),
  withLastSeen(services, guarded(services, amendRoute(trackerDeclaration, services.writer.resource))),
  {
    ...guarded(services, deleteRoute(trackerDeclaration, services.writer.resource)),
    settles: ({ trackerId }) => forgotten(trackerId.toLowerCase(), services.partitions),
  },
  rotateRoute(services),
]

const listRoute = (services: TrackerApiServices): Route =>
  route<TrackerListQuery>({
    method: 'GET',
    path: '/trackers',
    operationId: 'listTrackers',
    summary: 'List trackers, with their status as it is now',
    tag: 'Trackers',
    access: { permission: trackerDeclaration.permissions.view },
    query: listQuerySchema(declaredShape),
    answers: { 200: listAnswer(trackerDeclaration) },
    handler: (request) => listTrackers(services, { caller: userOf(request), query: request.query, now: request.now }),
  })

const keyed = (member: string): JsonSchema => {
  const { properties, ...schema } = rowSchema(trackerDeclaration)
  return envelope({
    data: { ...schema, properties: { ...(properties as object), [member]: text({ max: 100 }).schema } },
  })
}

const keyExample = {
  status: true,
  data: {
    _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
    ...trackerDeclaration.example,
    deviceKey: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a.<secret>',
  },
}

const createRoute = (services: TrackerApiServices): Route =>
  route<object, JsonObject>({
    method: 'POST',
    path: '/tracker',
    operationId: 'createTracker',
    summary: 'Create a tracker; its device key is told once',
    tag: 'Trackers',
    access: { permission: trackerDeclaration.permissions.edit },
    body: createSchema({ fields: { ...createdTracker.fields, externalId: optional(text({ max: 200 })) } }),
    bodyExample: { ...trackerDeclaration.example, externalId: 'bus-12' },
    answers: { 201: { description: 'The tracker.', schema: keyed('deviceKey'), example: keyExample } },
    handler: async (request) => {
      const { row, wrote, deviceKey } = await services.writer.create(originOf(request), request.body)
      return keyReply(services, request, row, deviceKey, wrote, 201)
    },
  })

const rotateRoute = (services: TrackerApiServices): Route =>
  route({
    method: 'POST',
    path: '/tracker/{trackerId}/rotate-key',
    operationId: 'rotateTrackerKey',
    summary: "Replace a tracker's device key; the one before ends at once",
    tag: 'Trackers',
    access: { permission: trackerDeclaration.permissions.edit },
    params: { trackerId: { type: 'string', minLength: 1, maxLength: 100 } },
    answers: { 200: { description: 'The tracker with its new key.', schema: keyed('deviceKey'), example: keyExample } },
    handler: async (request) => {
      await findRow(trackerDeclaration, services, request, request.params.trackerId)
      const { row, wrote, deviceKey } = await services.writer.rotateKey(originOf(request), request.params.trackerId)
      return keyReply(services, request, row, deviceKey, wrote, 200)
    },
  })

const keyReply = async (
  services: TrackerApiServices,
  request: Pick<RouteRequest, 'caller' | 'now'>,
  row: Row,
  deviceKey: string | undefined,
  wrote: Reply['wrote'],
  status: number,
): Promise<Reply> => {
  const shown = trackerDeclaration.present?.(row, { caller: userOf(request), now: request.now }) ?? row
  const [data] = await withStatus(services, userOf(request).organizationId, [shown], request.now)
  return { ...rowReply({ ...data, ...(deviceKey !== undefined && { deviceKey }) }, row, wrote, status), secret: true }
}

/** Adds `lastSeenAt` and `status` to what the kit's route answers. */
const withLastSeen = (services: TrackerApiServices, inner: Route): Route => ({
  ...inner,
  handler: async (request: RouteRequest<never, never>) => {
    const fields = (request.query as { fields?: string }).fields
    const whole = fields === undefined ? request : { ...request, query: {} as never }
    const reply = await inner.handler(whole)
    const [data] = await withStatus(services, userOf(request).organizationId, [reply.body?.data as Row], request.now)
    return { ...reply, body: { ...reply.body, data: chooseFields(declaredShape.members, fields)(data) } }
  },
})

/** Only a tracker that the caller sees can be changed, and never its `externalId`. */
const guarded = (services: TrackerApiServices, inner: Route): Route => ({
  ...inner,
  handler: async (request: RouteRequest<never, never>) => {
    const row = await findRow(trackerDeclaration, services, request, request.params.trackerId)
    const externalId = (request.body as JsonObject | undefined)?.externalId
    if (externalId !== undefined && externalId !== (row.externalId ?? null))
      throw invalid('/externalId', 'cannot be changed or added later')
    return inner.handler(request)
  },
})
