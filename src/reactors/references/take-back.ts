import { Failure } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { Follower } from '../../kit/consumers/follower.ts'
import { pause } from '../../kit/consumers/retry.ts'
import { withoutAttached } from '../../kit/files/attached-file.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { ResourceDeclaration } from '../../kit/resource/declaration.ts'
import { ResourceWriter } from '../../kit/resource/write.ts'
import { LATE_WRITES_MS, type WriteOrigin } from '../../kit/resource/writes.ts'
import { type Deletion, deletionsOf, eventsOf, settled } from './deletions.ts'
import type { TakeOutServices } from './take-out.ts'

export const TAKE_BACK = 'take-back-deletions'

/** Shortest wait after the tables have a deletion: they may lack events appended right after it. */
const BEHIND_MS = 1_000
/** Names tried for a restored record. */
const NAMES_MAX = 20
/** Older deletions are left as people have found them since, also where the log is followed from its beginning. */
const AGE_MS_MAX = 7 * 86_400_000

/**
 * Takes back a deletion that would have been refused: two processes, of which one deleted a record while the other one
 * started to name it, each looked at tables that did not have the other's write. The naming record cannot be without
 * it, and nobody can tell a better value, so that only the deletion is lost. Where the deletion named a replacement,
 * that is named instead.
 */
export const takeBackDeletions = (services: TakeOutServices): Follower => {
  const { clock, resources, tables } = services
  const declarations = resources.held()
  const deletionsIn = deletionsOf(declarations)
  return new Follower(services, {
    name: TAKE_BACK,
    source: eventsOf(declarations),
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
  const { plural } = declaration
  const { organizationId, replacedBy } = decodeJson<ResourceData>(event.data)
  const record = { plural, id: idOfStream(event.stream) }
  const holder = await resources.holderOf(services, organizationId, record)
  if (holder === undefined) return
  const now = clock.now()
  const metadata = { organizationId, actor: `reactor:${TAKE_BACK}`, $causationId: event.id }
  const origin = { organizationId, now, ids: idSource(now), metadata }
  const said = { organizationId, record: event.stream, namedBy: `${holder.plural} ${holder.id}` }
  const writer = new ResourceWriter(declaration, services)
  const statusOf = async (id: string) => (await writer.load(id)).state.status
  if (
    replacedBy !== undefined &&
    (await statusOf(replacedBy)) === 'live' &&
    (await statusOf(record.id)) === 'deleted'
  ) {
    await resources.redirect(services, origin, plural, record.id, replacedBy)
    return logger.warn('what came to name a deleted record names what took its place', { ...said, replacedBy })
  }
  try {
    const { wrote, shared } = await restore(writer, origin, record.id)
    const how = { ...said, ...(shared.length > 0 && { shared }) }
    if (wrote !== undefined) logger.warn('a deletion was taken back: something came to name the record meanwhile', how)
  } catch (error) {
    // A record that it names itself is gone: only the office can name the right one.
    if (!(error instanceof Failure) || error.status >= 500) throw error
    logger.error('a record that is named was deleted and cannot be restored', { ...said, error: error.message })
  }
}

/**
 * The record as it was, without its deleted files. Where another one has taken its name it gets a new one; any other
 * unique value it shares, and is listed as invalid. Where it exists again, or was erased, nothing happens.
 */
const restore = async (writer: ResourceWriter, origin: WriteOrigin, id: string) => {
  const { declaration } = writer
  const { field: unique, without = (values: JsonObject) => values } = declaration.unique ?? {}
  const shared: string[] = []
  for (let number = 1; ; ) {
    try {
      const { wrote } = await writer.handle(origin, id, async ({ organizationId, values, sealed, createdAt }) => {
        const restored = shared.reduce(without, withoutAttached(renamed(declaration, values, number)))
        const data = { organizationId, values: restored, sealed, createdAt, at: formatTime(origin.now) }
        return { type: 'restore', data }
      })
      return { wrote, shared }
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'key_in_use') throw error
      const field = error.details.errors?.[0].path.slice(1) ?? ''
      if (field === unique ? number++ === NAMES_MAX : shared.includes(field)) throw error
      if (field !== unique) shared.push(field)
    }
  }
}

/** From the second on with the number after its name: `Night shift (2)`. */
const renamed = ({ fields, unique }: ResourceDeclaration, values: JsonObject, number: number): JsonObject => {
  const field = unique?.field
  if (field === undefined || number === 1) return values
  const end = ` (${number})`
  const lengthMax = Number(fields[field].schema.maxLength) - end.length
  // Half a character is no text.
  const start = String(values[field])
    .slice(0, lengthMax)
    .replace(/[\ud800-\udbff]$/, '')
  return { ...values, [field]: start + end }
}
