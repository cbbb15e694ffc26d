import type { EventDocument } from '../../live/feed.ts'
import { IMPORT_EXAMPLE, IMPORT_SCHEMA } from './schemas.ts'

export const JOB_EVENTS: readonly EventDocument[] = [
  {
    channel: 'job',
    description: 'An import, each time that it goes on, for users who may read it.',
    schema: IMPORT_SCHEMA,
    examples: [IMPORT_EXAMPLE],
  },
]
