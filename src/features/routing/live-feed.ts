import type { EventDocument } from '../../live/feed.ts'
import { JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'

export const ROUTING_EVENTS: readonly EventDocument[] = [
  {
    channel: 'job',
    description: 'A planning of routes, each time that it goes on, for those who see its hub.',
    schema: JOB_SCHEMA,
    examples: [JOB_EXAMPLE],
  },
]
