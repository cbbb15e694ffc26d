import { Failure } from '../../kernel/errors.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { IdentityContext } from './context.ts'

/** Teams keep their members, so what a user's `teamIds` says is written to the teams. */
export const joinTeams = (
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
  teamIds: readonly string[],
): Promise<(Wrote | undefined)[]> =>
  changeMembers(context, origin, teamIds, (userIds) => (userIds.includes(userId) ? userIds : [...userIds, userId]))

export const leaveTeams = (
  context: IdentityContext,
  origin: WriteOrigin,
  userId: string,
  teamIds: readonly string[],
): Promise<(Wrote | undefined)[]> =>
  changeMembers(context, origin, teamIds, (userIds) => userIds.filter((other) => other !== userId))

const TRIES = 5

const changeMembers = async (
  context: IdentityContext,
  { caller: _caller, ...origin }: WriteOrigin,
  teamIds: readonly string[],
  change: (userIds: readonly string[]) => readonly string[],
): Promise<(Wrote | undefined)[]> => {
  const wrotes: (Wrote | undefined)[] = []
  for (const teamId of teamIds) wrotes.push(await changeTeam(context, origin, teamId, change))
  return wrotes
}

/** Writes without a caller: the rules of users have allowed it already, and the read models may not know the user yet. */
const changeTeam = async (
  context: IdentityContext,
  origin: WriteOrigin,
  id: string,
  change: (userIds: readonly string[]) => readonly string[],
): Promise<Wrote | undefined> => {
  for (let tries = 1; ; tries++) {
    const { state, version } = await context.teams.load(id)
    if (state.status !== 'live') return undefined
    const userIds = [...change((state.values.userIds ?? []) as string[])]
    try {
      return (await context.teams.change(origin, { id, kind: 'amend', body: { userIds }, expectedVersion: version }))
        .wrote
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'stale_version' || tries === TRIES) throw error
    }
  }
}
