import { breathe } from '../../../kernel/breath.ts'
import type { JsonSchema } from '../../../kernel/json.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import { answered, dataAnswer } from '../../../kit/http/page-members.ts'
import { route, type Route } from '../../../kit/http/route.ts'
import type { TripStart } from './answer.ts'
import { pointExample, POINTS_MAX, pointSchema } from './point-schema.ts'
import type { PointStore } from './store.ts'
import { tripToken } from '../trip-token.ts'

const BODY_BYTES_MAX = 16 * 1024 * 1024

/** `POST /location-history/bulk`: answers once the points are durable in the log. */
export const bulkRoute = (store: PointStore, keyring: Keyring): Route =>
  route<Record<string, never>, { points: unknown[] }>({
    method: 'POST',
    path: '/location-history/bulk',
    operationId: 'createLocationHistoryBulk',
    summary: 'Store many points; one bad point never loses its neighbours',
    tag: 'Location history',
    access: 'points',
    idempotent: false,
    bodyBytesMax: BODY_BYTES_MAX,
    body: bodySchema,
    bodyShown: {
      ...bodySchema,
      properties: { points: { ...pointsSchema, items: { title: 'Point', ...pointSchema } } },
    },
    takesAnyNames: true,
    bodyExample: { points: [pointExample] },
    answers: { 200: dataAnswer('The accepted points are durable.', answerSchema, answerExample) },
    handler: async ({ caller, body }) => {
      await breathe() // its text has just been parsed
      const { accepted, duplicates, rejected, tripStarts } = await store.store(caller, body.points)
      const trackingTokens = tokensOf(tripStarts, keyring)
      const data = {
        accepted,
        ...(duplicates > 0 && { duplicates }),
        rejected,
        ...(trackingTokens.length > 0 && { trackingTokens }),
      }
      return { body: { data } }
    },
  })

const tokensOf = (starts: readonly TripStart[], keyring: Keyring): { trackerId: string; token: string }[] => {
  const tokens = new Map<string, string>()
  for (const { trackerId, startedAt } of starts) tokens.set(tripToken(keyring, trackerId, startedAt), trackerId)
  return [...tokens].map(([token, trackerId]) => ({ trackerId, token }))
}

// Points are validated one by one, so that a bad one does not reject the request; the document shows their schema.
const pointsSchema: JsonSchema = {
  type: 'array',
  minItems: 1,
  description: `At most ${POINTS_MAX} points; a bad one is named in the answer.`,
  items: {},
}
const bodySchema: JsonSchema = {
  title: 'PointBatch',
  type: 'object',
  additionalProperties: false,
  required: ['points'],
  properties: { points: pointsSchema },
}

const answerSchema: JsonSchema = {
  title: 'PointBatchResult',
  type: 'object',
  required: ['accepted', 'rejected'],
  properties: {
    accepted: { type: 'integer', description: 'Points that are durable now, repeats of earlier requests among them.' },
    duplicates: { type: 'integer', description: 'Points that this request repeats within itself.' },
    rejected: {
      type: 'array',
      items: answered('RejectedPoint', {
        index: { type: 'integer', description: 'Of the point in the request, from 0.' },
        code: {
          type: 'string',
          enum: ['invalid', 'too_old', 'too_far_ahead', 'unknown_tracker', 'forbidden_tracker', 'tracker_limit'],
        },
        message: { type: 'string' },
      }),
    },
    trackingTokens: {
      type: 'array',
      description: 'One for each trip that the points start.',
      items: answered('TrackingToken', {
        trackerId: { type: 'string', format: 'uuid' },
        token: { type: 'string', description: 'For `GET /location-history/tracking/{token}`.' },
      }),
    },
  },
}

const answerExample = { accepted: 1, rejected: [{ index: 1, code: 'invalid', message: '/lat must be <= 90' }] }
