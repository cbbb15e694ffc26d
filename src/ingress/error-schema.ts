import { ERRORS } from '../kernel/errors.ts'
import type { JsonSchema } from '../kernel/json.ts'

const quotaSchema: JsonSchema = {
  title: 'Quota',
  type: 'object',
  properties: {
    name: { type: 'string', description: 'As in `limits` and `uses` of the organization.' },
    max: { type: 'integer', description: 'How many there may be.' },
    use: { type: 'integer', description: 'How many there are.' },
  },
  required: ['name', 'max', 'use'],
}

export const errorSchema: JsonSchema = {
  type: 'object',
  properties: {
    status: { const: false },
    message: { type: 'string', description: 'One sentence a person can act on.' },
    code: { type: 'string', enum: Object.keys(ERRORS) },
    errors: {
      type: 'array',
      description: 'The faults of a body or query.',
      items: {
        title: 'FieldError',
        type: 'object',
        properties: {
          path: { type: 'string', description: 'A JSON pointer.' },
          message: { type: 'string', description: 'What was expected there.' },
        },
        required: ['path', 'message'],
      },
    },
    fields: { type: 'array', items: { type: 'string' }, description: 'Of a 403: the fields that are restricted.' },
    permissions: { type: 'array', items: { type: 'string' }, description: 'Of a 403: what the giver lacks.' },
    version: {
      type: 'integer',
      description: 'Of a 409 for a stale version, or a move that does not hold: the current one.',
    },
    limit: {
      description: 'Of `quota`: the limit of the organization, or how many organizations one person may make.',
      anyOf: [quotaSchema, { type: 'integer' }],
    },
    used: { type: 'integer', description: 'Of `quota`: how many organizations the person has made.' },
    data: {
      type: 'object',
      additionalProperties: true,
      description: 'Of a 409 for a move of a task: the task as it is.',
    },
    engines: {
      type: 'array',
      items: { type: 'string' },
      description: 'Of `/readyz`: the storage that does not answer.',
    },
    routingResultId: { type: 'string', description: 'Of a 409 for a task that is in another plan: that plan.' },
    taskId: { type: 'string', description: 'Of the same: the task.' },
  },
  required: ['status', 'message', 'code'],
}
