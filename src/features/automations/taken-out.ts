import { pagesOf } from '../../engines/table-store.ts'
import { unlessGone } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { StepOrigin } from '../../kit/commands/process.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Details } from './action-type.ts'
import { editDetails } from './edit-details.ts'
import type { Names } from './events.ts'
import { openDetails } from './sealed.ts'
import { AUTOMATIONS, type AutomationRow } from './views.ts'

const PAGE_ROWS = 200

/**
 * Takes a deleted user or team out of the automations of its organization. One that names nobody else keeps naming it:
 * it cannot act, and its notice says so. Repeating it changes nothing.
 */
export const takeOutOfAutomations = async (
  services: Pick<ResourceServices, 'log' | 'keyring' | 'tables' | 'resources'>,
  origin: Pick<StepOrigin, 'organizationId' | 'ids' | 'metadata' | 'now'>,
  id: string,
): Promise<void> => {
  const { keyring, tables, resources } = services
  if (!resources.isDeclared(AUTOMATIONS.name)) return
  const edit = {
    details: (details: Details) => without(details, id),
    names: (names: Names) => namesWithout(names, id),
  }
  for await (const rows of pagesOf<AutomationRow>(tables, AUTOMATIONS.name, origin.organizationId, {
    limit: PAGE_ROWS,
  }))
    for (const { id: automationId, row } of rows) {
      const details = openDetails(keyring, row)
      if (edit.details(details) !== details) await unlessGone(editDetails(services, origin, automationId, edit))
    }
}

/** The same details where they do not name it, or nobody else. */
const without = (details: Details, id: string): Details => {
  const { to, assigneeIds, teamId, ...others } = details
  const isIt = (one: Json | undefined): boolean => typeof one === 'string' && one.toLowerCase() === id
  const left = (value: Json | undefined): Json | undefined =>
    Array.isArray(value) ? nonEmpty(value.filter((one) => !isIt(one))) : isIt(value) ? undefined : value
  const kept = { to: left(to), assigneeIds: left(assigneeIds), teamId: left(teamId) }
  const isNamed = [to, assigneeIds, teamId].flat().some(isIt)
  if (!isNamed || Object.values(kept).every((one) => one === undefined)) return details
  return { ...others, ...(Object.fromEntries(Object.entries(kept).filter(([, one]) => one !== undefined)) as Details) }
}

const nonEmpty = (list: Json[]): Json[] | undefined => (list.length > 0 ? list : undefined)

const namesWithout = (names: Names, id: string): Names =>
  Object.fromEntries(Object.entries(names).map(([resource, ids = []]) => [resource, ids.filter((one) => one !== id)]))
