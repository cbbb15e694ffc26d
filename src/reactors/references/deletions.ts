import type { RecordedEvent } from '../../kernel/event.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import { pause } from '../../kit/consumers/retry.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { ResourceDeclaration, ResourceServices } from '../../kit/resource/declaration.ts'
import { LATE_WRITES_MS } from '../../kit/resource/writes.ts'

const SETTLE_MS = 5_000

export interface DeletionServices extends Omit<FollowerServices, 'log'>, Pick<ResourceServices, 'log' | 'tables'> {
  /** Waits for the tables. */
  settle: Settle
}

export interface Deletion {
  event: RecordedEvent
  declaration: ResourceDeclaration
}

/** Events of the records of these resources. */
export const eventsOf = (declarations: readonly ResourceDeclaration[]) => ({
  prefixes: declarations.map(({ noun }) => `${noun}-`),
})

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
export const settled = async ({ settle }: Pick<DeletionServices, 'settle'>, event: RecordedEvent): Promise<void> => {
  if (!(await settle({ position: event.position, types: [event.type] }, SETTLE_MS)))
    throw new Error(`the tables do not have the deletion of ${event.stream} yet`)
}

/**
 * Handles each deletion of a record of these resources once the tables have it, and once more later, for records that
 * came to name it at that very moment.
 */
export const forEachDeletion = (
  services: DeletionServices,
  name: string,
  declarations: readonly ResourceDeclaration[],
  handleDeletion: (deletion: Deletion) => Promise<void>,
): Follower => {
  const deletionsIn = deletionsOf(declarations)
  return new Follower(services, {
    name,
    source: eventsOf(declarations),
    handle: async ({ events, caughtUp }, signal) => {
      const deletions = deletionsIn(events)
      if (deletions.length === 0) return undefined
      const handleAll = async (): Promise<void> => {
        for (const deletion of deletions) {
          if (signal.aborted) return
          await settled(services, deletion.event)
          await handleDeletion(deletion)
        }
      }
      await handleAll()
      if (!caughtUp) return []
      await pause(services.clock, LATE_WRITES_MS, signal)
      await handleAll()
      return []
    },
  }).start(services.tables)
}
