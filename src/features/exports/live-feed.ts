import type { EventDocument } from '../../live/feed.ts'
import { EXPORT_EXAMPLE, EXPORT_SCHEMA } from './schemas.ts'

export const JOB_EVENTS: readonly EventDocument[] = [
  {
    channel: 'job',
    description: 'An export that is a job, each time that it goes on, for the user who asked for it.',
    schema: EXPORT_SCHEMA,
    examples: [EXPORT_EXAMPLE],
  },
]
