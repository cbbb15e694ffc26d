import { answered, envelope } from '../../kit/http/page-members.ts'
import type { Answer, Route } from '../../kit/http/route.ts'
import { exampleRow, toldAnswer } from '../../kit/resource/answers.ts'
import { rowSchema } from '../../kit/resource/schemas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { PERMISSIONS, share } from './share.ts'
import { followUrl } from './views.ts'

/** The kind of a share decides which permission it needs: the declaration's audience and checks apply to each share. */
const ACCESS = { permission: PERMISSIONS.task, or: PERMISSIONS.tracker }

export const shareRoutes = (services: ResourceServices & { publicUrl: string }): Route[] => {
  const writer = share.writer(services)
  const routes = share.routes(services, {
    writes: {
      create: async (origin, body) => {
        const written = await writer.create(origin, body)
        const token = written.told?.token
        if (typeof token !== 'string') return written
        return { ...written, told: { token, url: followUrl(services.publicUrl, token) } }
      },
      change: (origin, change) => writer.change(origin, change),
      delete: (origin, deletion) => writer.delete(origin, deletion),
    },
  })
  return routes.map((route) => ({
    ...route,
    access: ACCESS,
    ...(route.method === 'POST' && {
      summary: 'Share a task or a tracker with somebody who has no account; its token and url are told once',
      description:
        'A task takes the permission `dispatch/task`: it is followed until an hour after it is over, at most 90 days. A tracker takes `edit/tracker` and `expiresAt`, at most 7 days ahead.',
      answers: { 201: CREATED },
    }),
  }))
}

const ONCE = { type: 'string', description: 'Shown once: store it.' }

const CREATED: Answer = {
  ...toldAnswer(share.declaration),
  schema: envelope({
    data: { allOf: [rowSchema(share.declaration), answered(undefined, { token: ONCE, url: ONCE }, ['token', 'url'])] },
  }),
  example: {
    status: true,
    data: { ...exampleRow(share.declaration), token: 'h0Jt2…', url: 'https://map.example.com/follow/h0Jt2…' },
  },
}
