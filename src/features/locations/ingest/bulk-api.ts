import type { Caller } from '../../../kernel/caller.ts'
import { breathe } from '../../../kernel/breath.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { JsonSchema } from '../../../kernel/json.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import { answered, envelope } from '../../../kit/http/page-members.ts'
import { route, type Route } from '../../../kit/http/route.ts'
import { TRIP_START } from '../events.ts'
import type { Ticket } from './queue.ts'
import type { Ingest } from './ingest.ts'
import type { PackedFrame } from './pack-points.ts'
import { pointExample, POINTS_MAX, pointSchema } from './point-schema.ts'
import { tripToken } from '../trip-token.ts'

const BODY_BYTES_MAX = 16 * 1024 * 1024
/** A log that has not taken the points by then is answered with 503; they may still become durable. */
const ANSWER_WITHIN_MS = 15_000
const RETRY_AFTER_SECONDS = 2

/** `POST /location-history/bulk`: answers once the points are durable in the log. */
export const bulkRoute = (ingest: Ingest, keyring: Keyring): Route =>
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
    answers: {
      200: {
        description: 'The accepted points are durable.',
        schema: envelope({ data: answerSchema }),
        example: { status: true, data: answerExample },
      },
    },
    handler: async ({ caller, body }) => {
      await breathe() // its text has just been parsed
      const { points } = body
      if (points.length > POINTS_MAX)
        throw new Failure('too_large', { message: `A request takes at most ${POINTS_MAX} points.` })
      if (ingest.batcher.isRefusing) throw new Failure('engine_down', { retryAfterSeconds: RETRY_AFTER_SECONDS })
      charge(ingest, caller, points.length)
      const frame = ingest.pack(caller, points)
      const isNew = frame.unresolved.length > 0
      if (isNew) await ingest.resolve(caller, frame)
      const [data] = await Promise.all([store(ingest, caller, frame, keyring), isNew ? ingest.listed() : undefined])
      return { body: { data } }
    },
  })

const charge = (ingest: Ingest, caller: Caller, points: number): void => {
  const retryAfterSeconds = ingest.batcher.charge(caller.organizationId, points)
  if (retryAfterSeconds > 0)
    throw new Failure('rate_limited', {
      message: 'Your organization sends more points than its rate allows.',
      retryAfterSeconds,
    })
}

/** Everything that is read of the frame is read before the first wait: its memory is used again. */
const store = (ingest: Ingest, caller: Caller, frame: PackedFrame, keyring: Keyring) => {
  const rejected = frame.rejected.slice()
  const duplicates = ingest.repeats(frame)
  const accepted = frame.columns.count - duplicates
  const trackingTokens = tokensOf(frame, keyring)
  const durable = new Promise<void>((done, failed) => {
    const giveUp = () => failed(new Failure('engine_down', { retryAfterSeconds: RETRY_AFTER_SECONDS }))
    const stop = ingest.clock.after(ANSWER_WITHIN_MS, giveUp)
    const ticket: Ticket = {
      remaining: 0,
      durable: () => {
        stop()
        done()
      },
      refused: () => {
        stop()
        giveUp()
      },
    }
    if (ingest.submit(caller, frame, ticket, true)) return
    stop()
    const message = ingest.batcher.isClosed
      ? 'The service is stopping.'
      : "Your organization's queue of points is full."
    failed(new Failure('overloaded', { message, retryAfterSeconds: RETRY_AFTER_SECONDS }))
  })
  return durable.then(() => {
    if (accepted > 0) ingest.count({ rejected }, accepted, duplicates)
    return {
      accepted,
      ...(duplicates > 0 && { duplicates }),
      rejected,
      ...(trackingTokens.length > 0 && { trackingTokens }),
    }
  })
}

const tokensOf = ({ columns }: PackedFrame, keyring: Keyring): { trackerId: string; token: string }[] => {
  const tokens = new Map<string, string>()
  for (let row = 0; row < columns.count; row++) {
    if ((columns.flags[row] & TRIP_START) === 0) continue
    const { trackerId } = columns.tracker[row]
    tokens.set(tripToken(keyring, trackerId, columns.recordedAt[row]), trackerId)
  }
  return [...tokens].map(([token, trackerId]) => ({ trackerId, token }))
}

// The points themselves are checked one by one, so that a bad one does not lose the request; the document shows their schema.
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
