import { invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { NAMES_NOTHING } from '../../kit/resource/references.ts'
import { USERS_TABLE, userHasHub } from '../identity/views.ts'
import type { TaskValues } from './views.ts'

type Services = Pick<ResourceServices, 'tables'>

/** Ids compare without case. */
export const keptIds = (ids: readonly string[]): string[] => [...new Set(ids.map((id) => id.toLowerCase()))]

export type Assigned = Pick<TaskValues, 'hubId' | 'teamId' | 'assigneeIds'>

/** Requires the team in the task's hub, and assignees in hub and team. @throws Failure invalid */
export const assertAssignees = async (
  { tables }: Services,
  organizationId: string,
  { hubId, teamId, assigneeIds }: Assigned,
): Promise<void> => {
  const [team, users] = await teamAndUsers(tables, organizationId, { teamId, assigneeIds })
  if (teamId !== undefined && team === undefined) throw invalid('/teamId', NAMES_NOTHING)
  if (team !== undefined && team.hubId !== hubId) throw invalid('/teamId', 'is a team of another hub')
  const haveHub = await hubOf(tables, organizationId, users, hubId)
  for (const [i, user] of users.entries()) {
    const path = `/assigneeIds/${i}`
    if (user === undefined) throw invalid(path, NAMES_NOTHING)
    if (!haveHub[i]) throw invalid(path, 'is a user without access to the hub of the task')
    if (team !== undefined && !(team.userIds as string[]).includes(assigneeIds[i]))
      throw invalid(path, 'is not a member of the team of the task')
  }
}

/** Assignees who may have the task in that hub; with an allowed team, only its members. */
export const keptAssignees = async (
  { tables }: Services,
  organizationId: string,
  { hubId, teamId, assigneeIds }: Assigned,
): Promise<{ assigneeIds: string[]; teamId: string | null }> => {
  const [team, users] = await teamAndUsers(tables, organizationId, { teamId, assigneeIds })
  const haveHub = await hubOf(tables, organizationId, users, hubId)
  const members = team?.hubId === hubId ? (team.userIds as string[]) : undefined
  const kept = assigneeIds.filter((id, i) => haveHub[i] && (members?.includes(id) ?? true))
  return { assigneeIds: kept, teamId: members === undefined ? null : (teamId as string) }
}

const teamAndUsers = (
  tables: Services['tables'],
  organizationId: string,
  { teamId, assigneeIds }: Pick<Assigned, 'teamId' | 'assigneeIds'>,
): Promise<[Row | undefined, (Row | undefined)[]]> =>
  Promise.all([
    teamId === undefined ? undefined : tables.get('teams', organizationId, teamId),
    tables.getMany(USERS_TABLE, organizationId, assigneeIds),
  ])

/** For each user, whether they exist and have the hub. */
const hubOf = (
  tables: Services['tables'],
  organizationId: string,
  users: readonly (Row | undefined)[],
  hubId: string,
): Promise<boolean[]> =>
  Promise.all(users.map(async (user) => user !== undefined && userHasHub(tables, organizationId, user, hubId)))
