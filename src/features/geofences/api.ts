import {
  answerList,
  chooseFields,
  FIELDS_PARAMETER,
  type ListQuery,
  type ListShape,
  listQuerySchema,
} from '../../kit/http/list-query.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { metadataOf, userOf } from '../../kit/http/request-context.ts'
import type { Resource } from '../../kit/resource/resource.ts'
import { PAGE_MEMBERS } from '../../kit/http/page-members.ts'
import { envelope, originOf, rowReply, versionOf } from '../../kit/resource/routes.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { ANNOUNCE_FENCES } from '../locations/events.ts'
import { AMEND_SCHEMA, CREATE_SCHEMA, GEOFENCE_EXAMPLE, REPLACE_SCHEMA, ROW_SCHEMA } from './geofence-body.ts'
import { GeofenceWriter, type WrittenGeofence } from './geofence-writer.ts'
import { importGeofences } from './import-geofences.ts'
import type { ShapeChecker } from './shape-checker.ts'
import { DETAIL_MEMBERS, GEOFENCE_GROUPS, GEOFENCES, withDetails } from './views.ts'

export interface GeofenceServices extends Pick<Services, 'log' | 'tables' | 'keyring'> {
  shapes: ShapeChecker
  groups: Resource
}

const VIEW = { permission: 'view/geofence' }
const EDIT = { permission: 'edit/geofence' }
const TAG = 'Geofences'
const IMPORT_BYTES_MAX = 64 * 1024 * 1024
/** A geometry of 20,000 positions as clients write it, and attributes. */
const BODY_BYTES_MAX = 2 * 1024 * 1024
const HOUR_MS = 3_600_000
/** A write counts in every partition before its reply. */
const IN_FORCE = [{ consumer: ANNOUNCE_FENCES }]

const LIST: ListShape = {
  table: GEOFENCES,
  members: Object.keys(ROW_SCHEMA.properties as object),
  filters: {
    _id: { type: 'string', format: 'uuid' },
    name: { type: 'string' },
    geofenceGroupId: { type: 'string', format: 'uuid' },
    isActive: { type: 'boolean' },
  },
  sortable: GEOFENCES.range ?? [],
  searchable: true,
}

/** Every route of geofences and their groups. */
export const geofenceRoutes = (services: GeofenceServices): Route[] => {
  const writer = new GeofenceWriter(services)
  const write =
    (run: (request: RouteRequest<object, JsonObject>, id: string) => Promise<WrittenGeofence>, status = 200) =>
    async (request: RouteRequest<object, JsonObject>): Promise<Reply> => {
      const { row, wrote } = await run(request, request.params.geofenceId)
      return rowReply(row, row, wrote, status)
    }
  const routes = [
    listRoute(services),
    readRoute(services),
    route({
      ...one('POST', 'createGeofence', 'Create a geofence'),
      path: '/geofence',
      params: undefined,
      body: CREATE_SCHEMA,
      bodyExample: GEOFENCE_EXAMPLE,
      answers: { 201: ROW_ANSWER },
      handler: write((request) => writer.create(originOf(request), request.body), 201),
    }),
    route({
      ...one('PUT', 'replaceGeofence', 'Replace a geofence'),
      body: REPLACE_SCHEMA,
      bodyExample: GEOFENCE_EXAMPLE,
      answers: { 200: ROW_ANSWER },
      handler: write((request, id) =>
        writer.change(originOf(request), id, 'replace', request.body, versionOf(request, request.body)),
      ),
    }),
    route({
      ...one('PATCH', 'amendGeofence', 'Amend a geofence'),
      body: AMEND_SCHEMA,
      bodyExample: { name: 'Depot Nord' },
      answers: { 200: ROW_ANSWER },
      handler: write((request, id) =>
        writer.change(originOf(request), id, 'amend', request.body, versionOf(request, request.body)),
      ),
    }),
    route({
      ...one('DELETE', 'deleteGeofence', 'Delete a geofence'),
      answers: { 200: { description: 'It is deleted; whoever was inside leaves.' } },
      handler: async (request) => {
        const { wrote } = await writer.delete(
          originOf(request),
          request.params.geofenceId,
          versionOf(request, undefined),
        )
        return { wrote }
      },
    }),
    { ...importRoute(services), settleTimeoutMs: HOUR_MS },
  ]
  return [...services.groups.routes(services), ...routes].map((declared) => ({
    ...declared,
    rollout: 'geofences',
    settles: () => IN_FORCE,
  }))
}

const ROW_ANSWER = {
  description: 'The geofence.',
  schema: envelope({ data: ROW_SCHEMA }),
  example: { status: true, data: GEOFENCE_EXAMPLE },
}

const one = (method: Route['method'], operationId: string, summary: string) => ({
  method,
  path: '/geofence/{geofenceId}',
  operationId,
  summary,
  tag: TAG,
  access: method === 'GET' ? VIEW : EDIT,
  params: { geofenceId: { type: 'string', minLength: 1, maxLength: 100 } },
  bodyBytesMax: BODY_BYTES_MAX,
})

const listRoute = (services: GeofenceServices): Route =>
  route<ListQuery>({
    method: 'GET',
    path: '/geofences',
    operationId: 'listGeofences',
    summary: 'List geofences',
    tag: TAG,
    access: VIEW,
    query: listQuerySchema(LIST),
    answers: {
      200: {
        description: 'A page of geofences. Name `fields` without geometry and attributes where they are not needed.',
        schema: envelope({ data: { type: 'array', items: ROW_SCHEMA }, total: { type: 'integer' }, ...PAGE_MEMBERS }),
        example: { status: true, data: [GEOFENCE_EXAMPLE], total: 1, page: 1, limit: 20, nextCursor: null },
      },
    },
    handler: (request) => {
      const caller = userOf(request)
      const { tables } = services
      const find: typeof tables.find = async (table, scope, question) => {
        const found = await tables.find(table, scope, question)
        if (!wantsDetails(request.query.fields)) return found as never
        const rows = await withDetails(
          tables,
          scope,
          found.rows.map(({ row }) => row),
        )
        return { ...found, rows: found.rows.map((stored, i) => ({ ...stored, row: rows[i] })) } as never
      }
      return answerList(LIST, {
        tables: { find },
        scope: caller.organizationId,
        caller,
        query: request.query,
        path: '/api/v3/geofences',
      })
    },
  })

const readRoute = (services: GeofenceServices): Route =>
  route<{ fields?: string }>({
    ...one('GET', 'readGeofence', 'Read a geofence'),
    query: { type: 'object', properties: { fields: FIELDS_PARAMETER }, additionalProperties: false },
    answers: { 200: ROW_ANSWER },
    handler: async (request) => {
      const choose = chooseFields(LIST.members, request.query.fields)
      const row = await findGeofence(services, request, request.params.geofenceId)
      const [whole] = wantsDetails(request.query.fields)
        ? await withDetails(services.tables, userOf(request).organizationId, [row])
        : [row]
      return rowReply(choose(whole), row)
    },
  })

const importRoute = (services: GeofenceServices): Route =>
  route<{ geofenceGroupId: string; nameProperty?: string }, Uint8Array>({
    method: 'POST',
    path: '/geofences/import',
    operationId: 'importGeofences',
    summary: 'Import geofences from GeoJSON',
    tag: TAG,
    access: EDIT,
    query: {
      type: 'object',
      properties: {
        geofenceGroupId: { type: 'string', format: 'uuid' },
        nameProperty: {
          type: 'string',
          minLength: 1,
          maxLength: 200,
          default: 'name',
          description: 'The property of a feature that names its geofence.',
        },
      },
      required: ['geofenceGroupId'],
      additionalProperties: false,
    },
    rawBody: { contentTypes: ['application/json', 'application/geo+json'] },
    bodyExample: {
      type: 'FeatureCollection',
      features: [{ type: 'Feature', properties: { name: 'Depot Mitte' }, geometry: GEOFENCE_EXAMPLE.geometry }],
    },
    bodyBytesMax: IMPORT_BYTES_MAX,
    answers: {
      200: {
        description: 'All good features are geofences now, and in force.',
        schema: envelope({ data: IMPORT_RESULT }),
        example: {
          status: true,
          data: {
            created: 2,
            rejected: [{ index: 1, code: 'invalid', message: '/geometry/coordinates/0 must be closed' }],
          },
        },
      },
    },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const { geofenceGroupId, nameProperty = 'name' } = request.query
      await assertExists(services.tables, GEOFENCE_GROUPS, organizationId, geofenceGroupId, '/geofenceGroupId')
      const { body: bytes, now, ids, signal } = request
      const metadata = metadataOf(request)
      const { wrote, ...data } = await importGeofences(services.log, services.shapes, {
        bytes,
        nameProperty,
        organizationId,
        geofenceGroupId,
        now,
        ids,
        metadata,
        signal,
      })
      return { body: { data }, wrote }
    },
  })

const IMPORT_RESULT = {
  type: 'object',
  properties: {
    created: { type: 'integer' },
    rejected: {
      type: 'array',
      items: {
        type: 'object',
        properties: { index: { type: 'integer' }, code: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
}

const wantsDetails = (fields: string | undefined): boolean =>
  fields === undefined || fields.split(',').some((name) => (DETAIL_MEMBERS as readonly string[]).includes(name.trim()))

const findGeofence = async (
  services: GeofenceServices,
  request: Pick<RouteRequest, 'caller'>,
  id: string,
): Promise<Row> => {
  const row = await services.tables.get(GEOFENCES.name, userOf(request).organizationId, id)
  if (row === undefined) throw new Failure('not_found')
  return row
}
