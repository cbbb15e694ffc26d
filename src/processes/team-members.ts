import { Failure } from '../kernel/errors.ts'
import type { OriginOf, StepOrigin } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { Office } from './office.ts'

type Teams = Pick<Office, 'teams'>

/** Teams store their members, so a user's `teamIds` are written to the teams. A full or deleted team is skipped. */
export const joinTeams = (
  office: Teams,
  originOf: OriginOf,
  userId: string,
  teamIds: readonly string[],
): Promise<Wrote | undefined> =>
  changeTeams(office, originOf, teamIds, (members) => (members.includes(userId) ? members : [...members, userId]))

export const leaveTeams = (
  office: Teams,
  originOf: OriginOf,
  userId: string,
  teamIds: readonly string[],
): Promise<Wrote | undefined> =>
  changeTeams(office, originOf, teamIds, (members) => members.filter((other) => other !== userId))

const TRIES = 5

const changeTeams = async (
  office: Teams,
  originOf: OriginOf,
  teamIds: readonly string[],
  change: (members: readonly string[]) => readonly string[],
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  for (const teamId of teamIds) wrotes.push(await changeTeam(office, originOf(teamId), teamId, change))
  return allWrote(...wrotes)
}

/** Writes without a caller: the rules of users allow it already, and read models may lack the user. */
const changeTeam = async (
  { teams }: Teams,
  origin: StepOrigin,
  id: string,
  change: (members: readonly string[]) => readonly string[],
): Promise<Wrote | undefined> => {
  for (let tries = 1; ; tries++) {
    const { state, version } = await teams.load(id)
    if (state.status !== 'live') return undefined
    const userIds = [...change((state.values.userIds ?? []) as string[])]
    try {
      return (await teams.change(origin, { id, kind: 'amend', body: { userIds }, expectedVersion: version })).wrote
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (error.code === 'invalid' || error.code === 'not_found') return undefined
      if (error.code !== 'stale_version' || tries === TRIES) throw error
    }
  }
}
