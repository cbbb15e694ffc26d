import type { AuditEntry } from '../../engines/clickhouse-sql/audit.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { categoryOf, dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { AUTOMATION_PREFIXES } from '../automations/events.ts'

export const AUDIT = 'audit-log'

/** The audit log as a list: actors and actions are read from the history, changes from the log. */
export const AUDIT_LOG: TableDeclaration = {
  name: 'auditLog',
  version: 1,
  equality: ['actorId', 'noun', 'resourceId', 'action', 'hubIds'],
  range: ['at'],
}

export type AuditRow = Row & Omit<AuditEntry, 'position'>

/** Values of a record as the audit log shows them to the caller. */
export type ShownInAudit = (
  services: { tables: TableStore; keyring: Keyring },
  caller: UserCaller,
  values: JsonObject,
) => Promise<JsonObject>

export type ActorType = 'user' | 'service' | 'automation' | 'schedule' | 'import'

/** Nouns besides the resources: changes by people to their own identity, and sign-ins and sign-outs. */
const IDENTITY = 'identity'
const SESSIONS = 'sessions'
/** Events without content, which only keep others from writing at the same place. */
const FENCE = /Fenced$/
const VERSION = /\.v\d+$/
const ACTOR_TYPES: readonly string[] = ['user', 'service', 'automation', 'schedule', 'import'] satisfies ActorType[]

/** Every resource is audited. */
export const auditedNouns = (resources: readonly { noun: string }[]): ReadonlySet<string> =>
  new Set([...resources.map(({ noun }) => noun), IDENTITY, SESSIONS])

/** Names of the nouns in entries. */
export const nounsShown = (resources: readonly { noun: string }[]): string[] =>
  [...auditedNouns(resources)].map(shownAs).sort()

const shownAs = (category: string): string => (category === SESSIONS ? 'session' : category)

export const auditedPrefixes = (nouns: ReadonlySet<string>): string[] =>
  [...nouns].flatMap((noun) => (noun === 'automation' ? AUTOMATION_PREFIXES : [`${noun}-`]))

/** Entry of an event; undefined if the event concerns nothing of an organization. */
export const auditEntry = (event: RecordedEvent, nouns: ReadonlySet<string>): AuditEntry | undefined => {
  const category = categoryOf(event.stream)
  const noun = shownAs(category)
  const resourceId = idOfStream(event.stream)
  // `<noun>-by-<hash>` holds claims on unique values.
  if (!nouns.has(category) || resourceId.startsWith('by-') || FENCE.test(event.type)) return undefined
  const data = dataOf<{ organizationId?: string; values?: { hubId?: string | string[] } }>(event)
  const organizationId = event.metadata.organizationId ?? data.organizationId
  if (organizationId === undefined) return undefined
  return {
    organizationId,
    at: event.loggedAt,
    _id: event.id,
    ...actorOf(event.metadata.actor),
    action: actionOf(noun, event.type),
    noun,
    resourceId,
    hubIds: noun === 'hub' ? [resourceId] : [data.values?.hubId ?? []].flat(),
    stream: event.stream,
    revision: event.revision,
    position: event.position,
  }
}

/** `hubCreated` of a hub becomes `created`; `passwordChanged` of an identity stays as it is. */
const actionOf = (noun: string, type: string): string => {
  const name = type.replace(VERSION, '')
  const action = name.startsWith(noun) ? name.slice(noun.length) : name
  return action[0].toLowerCase() + action.slice(1)
}

/** Service accounts are `service:<id>`. Actors that are neither users nor set up by users are parts of the service. */
const actorOf = (actor = 'service'): { actorType: string; actorId: string } => {
  const colon = actor.indexOf(':')
  const type = colon < 0 ? actor : actor.slice(0, colon)
  return ACTOR_TYPES.includes(type)
    ? { actorType: type, actorId: actor.slice(colon + 1) }
    : { actorType: 'service', actorId: actor }
}
