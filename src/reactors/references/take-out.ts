import { takeOutOfAutomations } from '../../features/automations/taken-out.ts'
import { USERS_TABLE } from '../../features/identity/views.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { eventTypes, idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import { pause } from '../../kit/consumers/retry.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { ResourceDeclaration, ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceSet } from '../../kit/resource/resource-set.ts'
import { LATE_WRITES_MS } from '../../kit/resource/writes.ts'

export const TAKE_OUT = 'take-out-references'

const SETTLE_MS = 5_000
const NAMED_BY_AUTOMATIONS = [USERS_TABLE, 'teams']

export interface TakeOutServices extends ResourceServices, Omit<FollowerServices, 'log'> {
  resources: ResourceSet
  /** Waits for the tables. */
  settle: Settle
}

export interface Deletion {
  event: RecordedEvent
  declaration: ResourceDeclaration
}

/**
 * Takes deleted records out of the records that name them. The deletion does so too, right away; this finishes it after
 * a crash, where too many records name it for one request, and for records that started to name it at that very moment.
 */
export const takeOutReferences = (services: TakeOutServices): Follower => {
  const declarations = services.resources.takenOut()
  const deletionsIn = deletionsOf(declarations)
  return new Follower(services, {
    name: TAKE_OUT,
    source: { prefixes: declarations.map(({ noun }) => `${noun}-`) },
    handle: async ({ events, caughtUp }, signal) => {
      const deletions = deletionsIn(events)
      if (deletions.length === 0) return undefined
      for (const deletion of deletions) if (!signal.aborted) await takeOut(services, deletion)
      if (!caughtUp) return []
      await pause(services.clock, LATE_WRITES_MS, signal)
      for (const deletion of deletions) if (!signal.aborted) await takeOut(services, deletion)
      return []
    },
  }).start(services.tables)
}

/** Picks the deletions of these resources' records. */
export const deletionsOf = (
  declarations: readonly ResourceDeclaration[],
): ((events: readonly RecordedEvent[]) => Deletion[]) => {
  const byType = new Map(declarations.map((declaration) => [eventTypes(declaration.noun).deleted, declaration]))
  return (events) =>
    events.flatMap((event) => {
      const declaration = byType.get(event.type)
      return declaration === undefined ? [] : [{ event, declaration }]
    })
}

/** @throws Error when the tables are behind: the records that name it are known once they have passed its deletion. */
export const settled = async ({ settle }: Pick<TakeOutServices, 'settle'>, event: RecordedEvent): Promise<void> => {
  if (!(await settle({ position: event.position, types: [event.type] }, SETTLE_MS)))
    throw new Error(`the tables do not have the deletion of ${event.stream} yet`)
}

const takeOut = async (services: TakeOutServices, { event, declaration }: Deletion): Promise<void> => {
  const { resources, clock } = services
  await settled(services, event)
  const { organizationId } = decodeJson<ResourceData>(event.data)
  const now = clock.now()
  const metadata = { organizationId, actor: `reactor:${TAKE_OUT}`, $causationId: event.id }
  const origin = { organizationId, now, ids: idSource(now), metadata }
  const id = idOfStream(event.stream)
  await resources.redirect(services, origin, declaration.plural, id, undefined)
  // Automations name them in their details, where no reference finds them.
  if (NAMED_BY_AUTOMATIONS.includes(declaration.plural)) await takeOutOfAutomations(services, origin, id)
}
