import { text } from '../../kernel/schema.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { createSchema, rowSchema } from '../../kit/resource/declaration.ts'
import { deleteRoute, envelope, listRoute, originOf, rowReply } from '../../kit/resource/routes.ts'
import { ResourceWriter } from '../../kit/resource/write.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { ingestKeyDeclaration } from './declaration.ts'
import { makeDeviceKey } from './device-key.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'

/** Ingest keys are made, listed and deleted, never changed. */
export const ingestKeyRoutes = (services: ResourceServices): Route[] => {
  const writer = new ResourceWriter(ingestKeyDeclaration, services)
  return [
    listRoute(ingestKeyDeclaration, services),
    createRoute(services, writer),
    deleteRoute(ingestKeyDeclaration, writer),
  ]
}

const createRoute = ({ keyring }: ResourceServices, writer: ResourceWriter): Route => {
  const { properties, ...schema } = rowSchema(ingestKeyDeclaration)
  return route<object, JsonObject>({
    method: 'POST',
    path: '/ingest-key',
    operationId: 'createIngestKey',
    summary: 'Create a key with which a gateway sends the points of a fleet; it is told once',
    tag: 'Trackers',
    access: { permission: ingestKeyDeclaration.permissions.edit },
    body: createSchema(ingestKeyDeclaration),
    bodyExample: ingestKeyDeclaration.example,
    answers: {
      201: {
        description: 'The key.',
        schema: envelope({
          data: { ...schema, properties: { ...(properties as object), key: text({ max: 100 }).schema } },
        }),
        example: {
          status: true,
          data: {
            _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
            ...ingestKeyDeclaration.example,
            key: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a.<secret>',
          },
        },
      },
    },
    handler: async (request) => {
      const origin = originOf(request)
      const id = (request.body._id as string | undefined)?.toLowerCase() ?? origin.ids.next()
      const { key, keyHash } = makeDeviceKey(keyring, id)
      const { row, wrote } = await writer.create(origin, { ...request.body, _id: id }, { keyHash })
      const { keyHash: _hash, ...shown } = row
      return { ...rowReply({ ...shown, key }, row, wrote, 201), secret: true }
    },
  })
}
