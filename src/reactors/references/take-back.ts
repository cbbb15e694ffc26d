import { Failure } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { Follower } from '../../kit/consumers/follower.ts'
import { pause } from '../../kit/consumers/retry.ts'
import { withoutAttached } from '../../kit/files/attached-file.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { ResourceWriter } from '../../kit/resource/write.ts'
import { LATE_WRITES_MS, type WriteOrigin } from '../../kit/resource/writes.ts'
import { type Deletion, deletionsOf, settled, type TakeOutServices } from './take-out.ts'

export const TAKE_BACK = 'take-back-deletions'

/** At least so long after the tables have a deletion: they may be behind with what was appended right after it. */
const BEHIND_MS = 1_000
/** What was deleted before is as people have found it since, also where the log is followed from its beginning. */
const AGE_MS_MAX = 7 * 86_400_000

/**
 * Takes a deletion back that would have been refused: two processes, of which one deleted a record while the other one
 * came to name it, each looked at tables that did not have the other's write. What names it cannot be without it, and
 * nobody knows better what to put in its place, so that nothing is lost but the deletion.
 */
export const takeBackDeletions = (services: TakeOutServices): Follower => {
  const { clock, resources, tables } = services
  const declarations = resources.held()
  const deletionsIn = deletionsOf(declarations)
  return new Follower(services, {
    name: TAKE_BACK,
    source: { prefixes: declarations.map(({ noun }) => `${noun}-`) },
    handle: async ({ events }, signal) => {
      const deletions = deletionsIn(events).filter(({ event }) => clock.now() - event.loggedAt <= AGE_MS_MAX)
      const last = deletions.at(-1)
      if (last === undefined) return undefined
      await settled(services, last.event)
      const leftMs = last.event.loggedAt + LATE_WRITES_MS - clock.now()
      await pause(clock, Math.min(LATE_WRITES_MS, Math.max(BEHIND_MS, leftMs)), signal)
      for (const deletion of deletions) if (!signal.aborted) await takeBack(services, deletion)
      return []
    },
  }).start(tables)
}

const takeBack = async (services: TakeOutServices, { event, declaration }: Deletion): Promise<void> => {
  const { clock, logger, resources } = services
  const { organizationId } = decodeJson<ResourceData>(event.data)
  const record = { plural: declaration.plural, id: idOfStream(event.stream) }
  const holder = await resources.holderOf(services, organizationId, record)
  if (holder === undefined) return
  const now = clock.now()
  const metadata = { organizationId, actor: `reactor:${TAKE_BACK}`, $causationId: event.id }
  const said = { organizationId, record: event.stream, namedBy: `${holder.plural} ${holder.id}` }
  try {
    const origin = { organizationId, now, ids: idSource(now), metadata }
    const { wrote } = await restore(new ResourceWriter(declaration, services), origin, record.id)
    if (wrote !== undefined) logger.warn('a deletion was taken back: something came to name the record meanwhile', said)
  } catch (error) {
    // Its name is another one's by now, or what it names itself is gone: nobody but the office can say what is meant.
    if (!(error instanceof Failure) || error.status >= 500) throw error
    logger.error('a record that is named was deleted and cannot be restored', { ...said, error: error.message })
  }
}

/** The record as it was, without the files that went with it. Where it is there again, or was erased, nothing happens. */
const restore = (writer: ResourceWriter, origin: WriteOrigin, id: string) =>
  writer.handle(origin, id, async ({ organizationId, values, sealed, createdAt }) => {
    const data = { organizationId, values: withoutAttached(values), sealed, createdAt, at: formatTime(origin.now) }
    return { type: 'restore', data }
  })
