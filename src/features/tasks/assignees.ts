import { invalid } from '../../kernel/errors.ts'
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
  const team = teamId === undefined ? undefined : await tables.get('teams', organizationId, teamId)
  if (teamId !== undefined && team === undefined) throw invalid('/teamId', NAMES_NOTHING)
  if (team !== undefined && team.hubId !== hubId) throw invalid('/teamId', 'is a team of another hub')
  const users = await tables.getMany(USERS_TABLE, organizationId, assigneeIds)
  for (const [i, user] of users.entries()) {
    const path = `/assigneeIds/${i}`
    if (user === undefined) throw invalid(path, NAMES_NOTHING)
    if (!(await userHasHub(tables, organizationId, user, hubId)))
      throw invalid(path, 'is a user without access to the hub of the task')
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
  const team = teamId === undefined ? undefined : await tables.get('teams', organizationId, teamId)
  const users = await tables.getMany(USERS_TABLE, organizationId, assigneeIds)
  const members = team?.hubId === hubId ? (team.userIds as string[]) : undefined
  const kept: string[] = []
  for (const [i, user] of users.entries()) {
    const mayHave = members?.includes(assigneeIds[i]) ?? true
    if (mayHave && user !== undefined && (await userHasHub(tables, organizationId, user, hubId)))
      kept.push(assigneeIds[i])
  }
  return { assigneeIds: kept, teamId: members === undefined ? null : (teamId as string) }
}
