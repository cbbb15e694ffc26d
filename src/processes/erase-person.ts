import { unlessGone } from '../kernel/errors.ts'
import { IDENTITY } from '../features/identity/events.ts'
import type { OriginOf } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { bury } from './bury.ts'
import type { Office } from './office.ts'

/** Erases a person who is in no organization. `forgotten` is the stream of their forgotten passwords. */
export const erasePerson = async (
  { log, people, sessions }: Pick<Office, 'log' | 'people' | 'sessions'>,
  identityId: string,
  forgotten: string,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  const at = formatTime(originOf().now)
  await unlessGone(people.command(identityId, { type: 'forget', at }, originOf(`forget ${identityId}`)))
  if ((await people.load(identityId)) !== undefined) return undefined
  await sessions.erase(identityId)
  await log.erase(forgotten)
  const tombstone = { type: IDENTITY.deleted, data: { at } }
  return bury(log, `identity-${identityId}`, tombstone, originOf(`identity ${identityId}`))
}
