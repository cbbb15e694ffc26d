import { pagesOf } from '../../../engines/table-store.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { ResourceServices } from '../../../kit/resource/declaration.ts'
import { AUTOMATIONS, type AutomationRow } from '../../automations/views.ts'

type Known = Pick<ResourceServices, 'tables' | 'resources'>

/** Number of automations that are named one by one. */
const NAMED_MAX = 5

/** Ids of the automations that tell the users of a role. */
export const automationsTelling = async (
  { tables, resources }: Known,
  organizationId: string,
  roleId: string,
): Promise<string[]> => {
  const ids: string[] = []
  if (!resources.isDeclared(AUTOMATIONS.name)) return ids
  for await (const rows of pagesOf<AutomationRow>(tables, AUTOMATIONS.name, organizationId, { limit: 200 }))
    ids.push(...rows.flatMap(({ id, row }) => (row.names?.roles?.includes(roleId) === true ? [id] : [])))
  return ids
}

/** @throws Failure conflict that names the automations which tell the users of a role */
export const assertTellsNobody = async (
  services: Known,
  organizationId: string,
  roleId: string,
  caller: Pick<UserCaller, 'permissions'> | undefined,
): Promise<void> => {
  const ids = await automationsTelling(services, organizationId, roleId)
  if (ids.length === 0) return
  const named = caller === undefined || caller.permissions.has('view/automation') ? ids.slice(0, NAMED_MAX) : []
  const others = ids.length - named.length
  throw new Failure('conflict', {
    message: `It is still in use by ${ids.length} ${ids.length === 1 ? 'automation' : 'automations'}.`,
    errors: [
      ...named.map((id) => ({ path: `/automation/${id}`, message: 'names it in automationDetails.to' })),
      ...(others > 0 ? [{ path: '/automations', message: `${others} more name it in automationDetails.to` }] : []),
    ],
  })
}
