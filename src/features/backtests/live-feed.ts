import type { EventDocument } from '../../live/feed.ts'
import { JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'

export const JOB_EVENTS: readonly EventDocument[] = [
  {
    channel: 'job',
    description: 'A back-test that is a job, each time that it goes on, for users who may read it.',
    schema: JOB_SCHEMA,
    examples: [JOB_EXAMPLE],
  },
]
