import { takeOutOfAutomations } from '../../features/automations/taken-out.ts'
import { USERS_TABLE } from '../../features/identity/views.ts'
import { decodeJson } from '../../kernel/event.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import type { Follower } from '../../kit/consumers/follower.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceSet } from '../../kit/resource/resource-set.ts'
import { type Deletion, type DeletionServices, forEachDeletion } from './deletions.ts'

export const TAKE_OUT = 'take-out-references'

const NAMED_BY_AUTOMATIONS = [USERS_TABLE, 'teams']

export interface TakeOutServices extends ResourceServices, DeletionServices {
  resources: ResourceSet
}

/**
 * Takes deleted records out of the records that name them. The deletion does so too, right away; this finishes it after
 * a crash, where too many records name it for one request, and for records that started to name it at that very moment.
 */
export const takeOutReferences = (services: TakeOutServices): Follower =>
  forEachDeletion(services, TAKE_OUT, services.resources.takenOut(), (deletion) => takeOut(services, deletion))

const takeOut = async (services: TakeOutServices, { event, declaration }: Deletion): Promise<void> => {
  const { resources, clock } = services
  const { organizationId } = decodeJson<ResourceData>(event.data)
  const now = clock.now()
  const metadata = { organizationId, actor: `reactor:${TAKE_OUT}`, $causationId: event.id }
  const origin = { organizationId, now, ids: idSource(now), metadata }
  const id = idOfStream(event.stream)
  await resources.redirect(services, origin, declaration.plural, id, undefined)
  // Automations name them in their details, where no reference finds them.
  if (NAMED_BY_AUTOMATIONS.includes(declaration.plural)) await takeOutOfAutomations(services, origin, id)
}
