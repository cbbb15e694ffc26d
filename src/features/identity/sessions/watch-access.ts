import type { RecordedEvent } from '../../../kernel/event.ts'
import { decodeJson } from '../../../kernel/event.ts'
import { eventTypes, idOfStream, type ResourceData } from '../../../kit/commands/declared-event.ts'
import { Follower } from '../../../kit/consumers/follower.ts'
import type { Services } from '../../../kit/services.ts'
import { IDENTITY, SESSION_STREAMS, type TokenRevoked } from '../events.ts'
import { ACCESS } from '../views.ts'

/** A change of access: the sockets that it names are checked again. Without user and token, all of the organization. */
export interface UserAccessChange {
  organizationId: string
  userId?: string
  jti?: string
  /** How long sockets stay open before they are checked. */
  graceMs?: number
}

const USER_TYPES: readonly string[] = ['user', 'serviceAccount'].flatMap((noun) => Object.values(eventTypes(noun)))
/** Users of a role and former members of a team are unknown here: the whole organization is checked. */
const SHARED_TYPES: readonly string[] = ['role', 'team', 'organization'].flatMap((noun) =>
  Object.values(eventTypes(noun)),
)
const STORED_LIMIT_MS = 10_000

/** Reports every change of access in the log, by any process, once its rows are stored; also those not stored yet at the start. */
export const watchAccess = async (
  services: Pick<Services, 'log' | 'tables' | 'clock' | 'logger' | 'checkpoints'>,
  onChanged: (change: UserAccessChange) => void,
): Promise<Follower> =>
  new Follower(services, {
    name: 'watch-access',
    source: { prefixes: ['user-', 'serviceAccount-', 'role-', 'team-', 'organization-', 'identity-', SESSION_STREAMS] },
    handle: async ({ events }) => {
      const changes = events.map(changeOf)
      const last = changes.findLastIndex((change) => change !== undefined)
      if (last < 0) return undefined
      if (!(await services.checkpoints.reached(ACCESS, { all: events[last].position }, STORED_LIMIT_MS)))
        throw new Error('what tokens may do is not stored yet')
      for (const change of changes) if (change !== undefined) onChanged(change)
      return undefined
    },
  }).startBehindRows(services.tables, ACCESS)

const changeOf = ({ type, stream, data, metadata }: RecordedEvent): UserAccessChange | undefined => {
  if (type === IDENTITY.tokenRevoked) {
    const { organizationId, userId, jti, graceMs } = decodeJson<TokenRevoked>(data)
    return { organizationId, userId, jti, graceMs }
  }
  if (type === IDENTITY.factorRemoved)
    return metadata.organizationId === undefined ? undefined : { organizationId: metadata.organizationId }
  const isUser = USER_TYPES.includes(type)
  if (!isUser && !SHARED_TYPES.includes(type)) return undefined
  const { organizationId } = decodeJson<ResourceData>(data)
  return isUser ? { organizationId, userId: idOfStream(stream) } : { organizationId }
}
