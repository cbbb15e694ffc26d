import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { GEOFENCE_GROUPS } from '../geofences/views.ts'
import { EVENTS } from './event-table.ts'
import { isGeofenceEvent } from './events.ts'
import type { AutomationRow, NoticeReason } from './views.ts'

export interface NoticeOptions {
  tables: Pick<TableStore, 'getMany'>
  /** The editor of an automation as rights are now; undefined for who is no active user any more. */
  editor(organizationId: string, userId: string): Promise<UserCaller | undefined>
  inRollout(editor: UserCaller): boolean
}

/** Why an automation does not fire: what the service noted when it deactivated it, or what is seen when it is read. */
export const NOTICES: { readonly [reason in NoticeReason]: string } = {
  gone: 'The receiver answered 410 Gone; the automation was deactivated.',
  failing: 'Nothing but failures for five days; the automation was deactivated.',
  editorGone: 'Whoever edited it last is no active user any more; an edit by somebody else makes it fire again.',
  editorLacksPermission: 'Whoever edited it last may not see this event any more.',
  editorLacksHubs: 'Whoever edited it last has no hub any more.',
  groupGone: 'Its geofence group is gone.',
  notRolledOut: 'Geofences are not available to this organization any more.',
}

/** Rows of one organization, with a notice on each that cannot fire. */
export const withNotices = async (
  options: NoticeOptions,
  organizationId: string,
  rows: readonly AutomationRow[],
): Promise<AutomationRow[]> => {
  const editors = new Map(
    await Promise.all(
      [...new Set(rows.map(({ editorId }) => editorId))].map(
        async (editorId) => [editorId, await options.editor(organizationId, editorId)] as const,
      ),
    ),
  )
  const groups = await existing(options, organizationId, rows)
  return rows.map((row) => {
    if (row.notice !== undefined) return row
    const reason = reasonOf(row, editors.get(row.editorId), groups, options)
    return reason === undefined ? row : { ...row, notice: { reason } }
  })
}

const existing = async (
  { tables }: NoticeOptions,
  organizationId: string,
  rows: readonly AutomationRow[],
): Promise<ReadonlySet<string>> => {
  const ids = [...new Set(rows.flatMap(({ geofenceGroupId = [] }) => geofenceGroupId))]
  const found = ids.length === 0 ? [] : await tables.getMany(GEOFENCE_GROUPS, organizationId, ids)
  return new Set(ids.filter((_, i) => found[i] !== undefined))
}

const reasonOf = (
  { event, geofenceGroupId }: AutomationRow,
  editor: UserCaller | undefined,
  groups: ReadonlySet<string>,
  { inRollout }: NoticeOptions,
): NoticeReason | undefined => {
  if (editor === undefined) return 'editorGone'
  if (isGeofenceEvent(event)) {
    if (!inRollout(editor)) return 'notRolledOut'
    if (geofenceGroupId === undefined || !groups.has(geofenceGroupId)) return 'groupGone'
  }
  if (!editor.permissions.has(EVENTS[event].permission)) return 'editorLacksPermission'
  return editor.hubIds !== 'all' && editor.hubIds.length === 0 ? 'editorLacksHubs' : undefined
}
