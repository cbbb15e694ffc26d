import { bool, optional } from '../../kernel/schema.ts'
import { toldAnswer } from '../../kit/resource/answers.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { ResourceAction } from '../../kit/resource/declaration.ts'
import type { Resource } from '../../kit/resource/resource.ts'
import { madeOnce, stillTold } from '../../kit/resource/told-once.ts'

/** How long the previous key works alongside the new one. */
const OVERLAP_MS = 24 * 3_600_000

/** `POST /service-account/{id}/rotate-key`. A repeated request finds the key that it created, and changes nothing. */
export const rotateKey = ({ declaration, writer }: Resource): ResourceAction => ({
  path: 'rotate-key',
  operationId: 'rotateServiceAccountKey',
  summary: 'Replace the key of a service account; the one before works 24 h more, or not at all with `now`',
  body: { now: optional(bool()) },
  bodyExample: { now: true },
  answer: toldAnswer(declaration),
  run: async ({ body, origin, id, services }) => {
    const once = madeOnce(declaration, services, origin, id)
    if (once === undefined) throw new Error('a service account has a key')
    const writes = writer(services)
    const { row, wrote } = await writes.update(origin, id, (before) => {
      if (before.keyHash === once.kept.keyHash) return before
      const { previousKeyHash: _hash, previousKeyUntil: _until, ...kept } = before
      if (body.now === true) return { ...kept, ...once.kept }
      const previousKeyUntil = formatTime(origin.now + OVERLAP_MS)
      return { ...kept, ...once.kept, previousKeyHash: before.keyHash, previousKeyUntil }
    })
    const { state } = await writes.load(id)
    return { row, wrote, ...stillTold(once, state) }
  },
})
