import type { TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { DATA_TYPES } from '../data/views.ts'
import { FLOWS } from '../flows/views.ts'
import { GEOFENCE_GROUPS } from '../geofences/views.ts'
import { HUBS_TABLE, ROLES_TABLE, USERS_TABLE } from '../identity/views.ts'
import type { ActionTypes } from './action-type.ts'
import { EVENTS } from './event-table.ts'
import { type AutomationEvent, isGeofenceEvent } from './events.ts'
import type { AutomationRow, NoticeReason } from './views.ts'

export interface NoticeOptions {
  actions: ActionTypes
  tables: Pick<TableStore, 'getMany'>
  /** Editor of an automation with current rights; undefined if they are no longer an active user. */
  editor(organizationId: string, userId: string): Promise<UserCaller | undefined>
  inRollout(editor: UserCaller): boolean
  /** Whether anything in this product fires the event. */
  isFired(event: AutomationEvent): boolean
}

/** Reason why an automation does not fire: noted when the service deactivated it, or found when it is read. */
export const NOTICES: { readonly [reason in NoticeReason]: string } = {
  gone: 'The receiver answered 410 Gone; the automation was deactivated.',
  failing: 'Nothing but failures for five days; the automation was deactivated.',
  editorGone: 'Its last editor is no active user any more; an edit by somebody else makes it fire again.',
  editorLacksPermission: 'Its last editor may not see this event any more.',
  editorLacksHubs: 'Its last editor has no hub any more.',
  editorLacksRight: 'Its last editor may not do this any more.',
  groupGone: 'Its geofence group is gone.',
  flowGone: 'Its flow is gone.',
  dataTypeGone: 'Its data type is gone.',
  hubGone: 'Its hub is gone, or its last editor does not have it any more.',
  peopleGone: 'Nobody whom it names is left.',
  notRolledOut: 'Geofences are not available to this organization any more.',
  neverFired: 'Nothing on this server makes this event yet; it will fire once something does.',
}

/** Rows of one organization, with a notice on each that cannot fire. */
export const withNotices = async (
  options: NoticeOptions,
  organizationId: string,
  rows: readonly AutomationRow[],
): Promise<AutomationRow[]> => {
  const editorIds = [...new Set(rows.map(({ editorId }) => editorId))]
  const editors = new Map<string, UserCaller | undefined>()
  for (const id of editorIds) editors.set(id, await options.editor(organizationId, id))
  const known = await existing(options, organizationId, rows)
  return rows.map((row) => {
    if (row.notice !== undefined) return row
    const reason = reasonOf(row, editors.get(row.editorId), known, options)
    return reason === undefined ? row : { ...row, notice: { reason } }
  })
}

/** Tables with rows that automations name. */
const TABLES = {
  groups: GEOFENCE_GROUPS,
  flows: FLOWS,
  dataTypes: DATA_TYPES,
  hubs: HUBS_TABLE,
  users: USERS_TABLE,
  roles: ROLES_TABLE,
  teams: 'teams',
}
type Named = { [table in keyof typeof TABLES]: readonly string[] }

const namedBy = ({ geofenceGroupId, names = {}, rules }: AutomationRow): Named => {
  const ofRule = (key: string): string[] => {
    const value = rules.fields[key]
    return typeof value === 'string' ? [value] : []
  }
  const { flows = [], dataTypes = [], hubs = [], users = [], roles = [], teams = [] } = names
  return {
    groups: geofenceGroupId === undefined ? [] : [geofenceGroupId],
    flows: [...flows, ...ofRule('task.flowId')],
    dataTypes: [...dataTypes, ...ofRule('record.dataTypeId')],
    hubs: [...hubs, ...ofRule('task.hubId')],
    users,
    roles,
    teams,
  }
}

/** Ids that the rows name and that exist. */
const existing = async (
  { tables }: NoticeOptions,
  organizationId: string,
  rows: readonly AutomationRow[],
): Promise<ReadonlySet<string>> => {
  const named = rows.map(namedBy)
  const found = new Set<string>()
  for (const [of, table] of Object.entries(TABLES)) {
    const ids = [...new Set(named.flatMap((one) => one[of as keyof Named]))]
    const there = ids.length === 0 ? [] : await tables.getMany(table, organizationId, ids)
    for (const [i, id] of ids.entries()) if (there[i] !== undefined) found.add(id)
  }
  return found
}

const reasonOf = (
  row: AutomationRow,
  editor: UserCaller | undefined,
  known: ReadonlySet<string>,
  { inRollout, isFired, actions }: NoticeOptions,
): NoticeReason | undefined => {
  const { event, geofenceGroupId, automationType } = row
  if (!isFired(event)) return 'neverFired'
  if (editor === undefined) return 'editorGone'
  if (isGeofenceEvent(event)) {
    if (!inRollout(editor)) return 'notRolledOut'
    if (geofenceGroupId === undefined || !known.has(geofenceGroupId)) return 'groupGone'
  }
  if (!editor.permissions.has(EVENTS[event].permission)) return 'editorLacksPermission'
  if (editor.hubIds !== 'all' && editor.hubIds.length === 0) return 'editorLacksHubs'
  const needs = actions[automationType]?.needs ?? []
  return needs.some((permission) => !editor.permissions.has(permission))
    ? 'editorLacksRight'
    : goneOf(row, editor, known)
}

const goneOf = (row: AutomationRow, editor: UserCaller, known: ReadonlySet<string>): NoticeReason | undefined => {
  const { flows, dataTypes, hubs, users, roles, teams } = namedBy(row)
  const isGone = (id: string): boolean => !known.has(id)
  if (flows.some(isGone)) return 'flowGone'
  if (dataTypes.some(isGone)) return 'dataTypeGone'
  if (hubs.some((id) => isGone(id) || !seesHubs(editor, [id]))) return 'hubGone'
  const people = [...users, ...roles, ...teams]
  return people.length > 0 && people.every(isGone) ? 'peopleGone' : undefined
}
