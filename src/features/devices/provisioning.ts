import type { Row } from '../../kernel/table.ts'
import { answered, envelope } from '../../kit/http/page-members.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { APP_LINKS, type App, APPS } from './app-links.ts'

export interface ProvisioningOptions {
  publicUrl: string
  /** The tracker as the caller sees it. @throws Failure not_found */
  find(request: Pick<RouteRequest, 'caller'>, trackerId: string): Promise<Row>
  /** Rotates its key; the previous one stops working at once. */
  rotate(
    request: RouteRequest<object, unknown>,
    trackerId: string,
  ): Promise<{ deviceKey: string; wrote: Reply['wrote'] }>
}

/** `POST /tracker/{id}/provisioning`: a new key in an app's format, shown once. */
export const provisioningRoute = ({ publicUrl, find, rotate }: ProvisioningOptions): Route =>
  route<object, { app: App }>({
    method: 'POST',
    path: '/tracker/{trackerId}/provisioning',
    operationId: 'provisionTracker',
    summary: 'Make the link and QR code that connect an app as this tracker',
    description: 'Replaces the device key: the one before ends at once, and the answer is shown once.',
    tag: 'Trackers',
    access: { permission: 'edit/tracker' },
    params: { trackerId: { type: 'string', format: 'uuid', description: 'The id of the tracker.' } },
    body: {
      title: 'Provisioning',
      type: 'object',
      additionalProperties: false,
      required: ['app'],
      properties: { app: { enum: APPS, description: 'The app that will send its points.' } },
    },
    bodyExample: { app: 'owntracks' },
    answers: { 200: { description: 'What the app reads.', schema: envelope({ data: linkSchema }), example: EXAMPLE } },
    handler: async (request) => {
      const row = await find(request, request.params.trackerId)
      const { deviceKey, wrote } = await rotate(request, row._id as string)
      const name = String(row.externalId ?? row.name)
      const data = APP_LINKS[request.body.app]({ publicUrl, key: deviceKey, name })
      return { body: { data }, wrote, secret: true }
    },
  })

const linkSchema = answered('AppLink', {
  url: { type: 'string', description: 'The address that the app sends to, or the template that it fills.' },
  link: { type: 'string', description: 'Opens the app with everything set, where the app knows such links.' },
  qr: { type: 'string', description: 'The text of a QR code.' },
})

const EXAMPLE = {
  status: true,
  data: {
    url: 'https://map.example.com/in/overland',
    link: 'overland://setup?url=https%3A%2F%2Fmap.example.com%2Fin%2Foverland&token=%E2%80%A6&device_id=van-12',
    qr: 'overland://setup?url=https%3A%2F%2Fmap.example.com%2Fin%2Foverland&token=%E2%80%A6&device_id=van-12',
  },
}
