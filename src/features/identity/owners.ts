import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import { handleCommand, type CommandContext } from '../../kit/commands/handle-command.ts'
import type { EventLog } from '../../engines/event-log.ts'
import type { Wrote } from '../../kit/http/route.ts'
import { OWNER, type OwnerEvent } from './events.ts'

type OwnersCommand = { type: 'add' | 'remove'; userId: string; at: string }

/** Active owners of an organization; in one stream, so that two who leave at the same time cannot both be the last. */
export const owners: Decider<ReadonlySet<string>, OwnersCommand> = {
  initial: new Set(),
  decide: ({ type, userId, at }, state) => {
    if (state.has(userId) === (type === 'add')) return []
    if (type === 'remove' && state.size === 1)
      throw new Failure('conflict', {
        message: 'An organization needs an active owner; make somebody else owner first.',
      })
    return [{ type: type === 'add' ? OWNER.added : OWNER.removed, data: { userId, at } satisfies OwnerEvent }]
  },
  evolve: (state, fact) => {
    const { userId } = fact.data as OwnerEvent
    const next = new Set(state)
    if (fact.type === OWNER.added) next.add(userId)
    if (fact.type === OWNER.removed) next.delete(userId)
    return next
  },
}

/** @throws Failure conflict if the last owner would leave. */
export const changeOwners = async (
  log: EventLog,
  organizationId: string,
  command: OwnersCommand,
  context: CommandContext,
): Promise<Wrote | undefined> => (await handleCommand(log, `owners-${organizationId}`, owners, command, context)).wrote
