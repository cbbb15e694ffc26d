import { isDeepStrictEqual } from 'node:util'
import type { EventLog } from '../../engines/event-log.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { ResourceDeclaration } from '../../kit/resource/declaration.ts'
import { writeOnlyOf } from '../../kit/resource/schemas.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import type { AuditRow } from './views.ts'

export interface Change {
  from?: Json
  to?: Json
}

/** Logged content of an entry; it is gone once the data is erased. */
export interface Logged {
  changes: { [field: string]: Change }
  address?: string
}

/** Events of one stream that are searched for the value of a field before the change. */
const LOOK_BACK_EVENTS = 50
/** Only the length of a longer value is shown. */
const VALUE_CHARACTERS_MAX = 4_096
/** Fields of others shown to callers who may not edit users. */
const USER_FIELDS = ['name', 'status', 'roleId']

export interface LoggedServices {
  log: Pick<EventLog, 'read'>
  /** Values as reads of their resource show them to the caller, if the log keeps them in another form. */
  asShown(caller: UserCaller, declaration: ResourceDeclaration, values: JsonObject): Promise<JsonObject>
}

/** Logged content of an entry, as far as this reader may see it. */
export const readLogged = async (
  { log, asShown }: LoggedServices,
  caller: UserCaller,
  declaration: ResourceDeclaration | undefined,
  { stream, revision, _id }: AuditRow,
): Promise<Logged> => {
  const [event, previous] = await log.read(stream, revision, 2, 'backwards')
  if (event?.id !== _id) return { changes: {} }
  const { address } = event.metadata
  const shown = { ...(address !== undefined && { address }) }
  if (declaration === undefined || !caller.permissions.has(declaration.permissions.view))
    return { changes: {}, ...shown }
  const change = saidBy(event)
  const before = previous === undefined ? {} : await valuesAt(log, stream, previous)
  const after = change.isPatch ? mergePatch(before, change.values) : change.values
  const see = async (values: JsonObject): Promise<JsonObject> =>
    visible(caller, declaration, await asShown(caller, declaration, values))
  return { changes: differences(await see(before), change.isDeleted ? {} : await see(after)), ...shown }
}

interface Said {
  values: JsonObject
  /** The event holds only changed values. */
  isPatch: boolean
  isDeleted: boolean
}

/** Values in an event, in the forms in which resources keep them. */
const saidBy = ({ type, data }: RecordedEvent): Said => {
  const said = decodeJson<
    { values?: JsonObject; sealed?: JsonObject; content?: JsonObject; changes?: JsonObject } & JsonObject
  >(data)
  const isDeleted = /Deleted(\.v\d+)?$/.test(type)
  const isPatch = said.values === undefined && said.content === undefined && !/Created(\.v\d+)?$/.test(type)
  // Sealed values are in a separate member; the code that shows them opens them.
  const declared: JsonObject | undefined = said.values && {
    ...said.values,
    ...(said.sealed && { sealed: said.sealed }),
  }
  const { shape, ...values } = declared ?? said.content ?? said.changes ?? (isPatch ? {} : said)
  const shaped = shape === undefined ? values : { ...values, ...shapeFields(shape as JsonObject, isPatch) }
  return { values: shaped, isPatch, isDeleted }
}

/** Shape of a geofence as fields; in a patch, the fields of the previous shape are removed. */
const shapeFields = (shape: JsonObject, isPatch: boolean): JsonObject => ({
  ...(isPatch && { geometry: null, center: null, radius: null, width: null }),
  ...('coordinates' in shape ? { geometry: shape } : shape),
})

const valuesAt = async (log: Pick<EventLog, 'read'>, stream: string, event: RecordedEvent): Promise<JsonObject> => {
  const said = saidBy(event)
  if (!said.isPatch) return said.isDeleted ? {} : said.values
  const earlier = await log.read(stream, event.revision, LOOK_BACK_EVENTS, 'backwards')
  const all = earlier.map(saidBy)
  const whole = all.findIndex(({ isPatch }) => !isPatch)
  return all
    .slice(0, whole < 0 ? undefined : whole + 1)
    .reverse()
    .reduce((values, { values: next, isDeleted }) => (isDeleted ? {} : mergePatch(values, next)), {})
}

/** Fields of the resource's reads, without secrets and internals; `asShown` removed those hidden by the role. */
const visible = (caller: UserCaller, declaration: ResourceDeclaration, values: JsonObject): JsonObject => {
  const { noun, fields, readOnly, permissions } = declaration
  const isOthers = noun === 'user' && !caller.permissions.has(permissions.edit)
  const names = Object.keys({ ...fields, ...readOnly }).filter(
    (name) => !writeOnlyOf(declaration).includes(name) && (!isOthers || USER_FIELDS.includes(name)),
  )
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name))) as JsonObject
}

const differences = (before: JsonObject, after: JsonObject): Logged['changes'] => {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return Object.fromEntries(
    names
      .filter((name) => !isDeepStrictEqual(before[name], after[name]))
      .map((name) => [name, { ...side('from', before[name]), ...side('to', after[name]) }]),
  )
}

const side = (name: 'from' | 'to', value: Json | undefined): Change => {
  if (value === undefined) return {}
  const { length } = JSON.stringify(value)
  return { [name]: length > VALUE_CHARACTERS_MAX ? { omittedCharacters: length } : value }
}
