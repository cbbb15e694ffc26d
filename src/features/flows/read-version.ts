import type { EventLog } from '../../engines/event-log.ts'
import { Failure } from '../../kernel/errors.ts'
import { dataOf } from '../../kernel/event.ts'
import { eventTypes, type ResourceData, rowOf } from '../../kit/commands/declared-event.ts'
import { userOf } from '../../kit/http/request-context.ts'
import type { RouteParts } from '../../kit/resource/served.ts'

const { created, changed } = eventTypes('flow')

/**
 * Reads a flow at a version, from the flow's own stream: tasks keep the version that they were created with, so
 * versions of deleted flows are answered too.
 */
export const readVersion = ({ log }: { log: Pick<EventLog, 'read'> }): RouteParts['read'] => ({
  query: {
    version: {
      type: 'integer',
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The flow as it was in this version, also when it is deleted; left out, as it is now.',
    },
  },
  row: async (request, id) => {
    const { version } = request.query as { version?: number }
    if (version === undefined) return undefined
    const flowId = id.toLowerCase()
    const [event] = await log.read(`flow-${flowId}`, version - 1, 1)
    if (event?.revision !== version - 1 || ![created, changed].includes(event.type)) throw new Failure('not_found')
    const data = dataOf<ResourceData>(event)
    if (data.organizationId !== userOf(request).organizationId) throw new Failure('not_found')
    return rowOf(flowId, version, { ...data, updatedAt: data.at })
  },
})
