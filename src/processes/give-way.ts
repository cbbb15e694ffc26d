import { unlessGone } from '../kernel/errors.ts'
import { tellHeir } from '../features/automations/role-heir.ts'
import { automationsTelling } from '../features/identity/users/role-recipients.ts'
import { ROLES_TABLE } from '../features/identity/views.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import { ResourceWriter } from '../kit/resource/write.ts'
import { GIVE_WAY, type GiveWayData } from '../kit/resource/writes.ts'

/** Redirects references from a record to its heir, deletes the record, and redirects again those added meanwhile. */
export const giveWay = (services: ResourceServices): Process<GiveWayData> => {
  const redirect = async ({ plural, id, replaceWith }: GiveWayData, originOf: OriginOf): Promise<Wrote | undefined> =>
    (await services.resources.redirect(services, originOf(), plural, id, replaceWith)).wrote
  return defineProcess(GIVE_WAY, [
    { name: 'heir', run: redirect },
    {
      name: 'record',
      run: ({ plural, id, replaceWith }, originOf) => {
        const writer = new ResourceWriter(services.resources.declarationOf(plural), services)
        return unlessGone(writer.remove(originOf(), id, undefined, replaceWith))
      },
    },
    { name: 'late heir', run: redirect },
    { name: 'recipients', run: (data, originOf) => redirectRecipients(services, data, originOf) },
  ])
}

/** Automations name roles in their details, where no reference finds them. */
const redirectRecipients = async (
  services: ResourceServices,
  { plural, id, replaceWith }: GiveWayData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  if (plural !== ROLES_TABLE) return undefined
  let wrote: Wrote | undefined
  const automationIds = await automationsTelling(services, originOf().organizationId, id)
  for (const automationId of automationIds)
    wrote = allWrote(wrote, await unlessGone(tellHeir(services, originOf(automationId), automationId, id, replaceWith)))
  return wrote
}
