import { EVENTS } from '../../features/automations/event-table.ts'
import { isGeofenceEvent, type RunTrigger } from '../../features/automations/events.ts'
import { openDetails } from '../../features/automations/sealed.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import type { Actions } from './actions/action.ts'
import type { Directory } from './directory.ts'
import { trackerEventData } from './event-data.ts'
import type { EventData } from './event-seen.ts'

export interface DryRunOptions {
  keyring: Keyring
  directory: Directory
  actions: Actions
}

const MINUTE_MS = 60_000

/** Stands in for an editor who is gone. */
const nobody = ({ organizationId, editorId }: AutomationRow): UserCaller => ({
  kind: 'user',
  organizationId,
  userId: editorId,
  ...{ identityId: '', email: '', jti: '', expiresAt: 0, roleId: '' },
  ...{ permissions: new Set<string>(), permissionDetails: [], hubIds: [], teamIds: [] },
})

/** What an automation would do for a sample event of a minute ago, as its last editor may see it; nothing is done. */
export const dryRun = async (options: DryRunOptions, automation: AutomationRow, now: number): Promise<JsonObject> => {
  const { _id, automationType } = automation
  const action = options.actions[automationType]
  if (action === undefined) throw new Error(`there is no action ${automationType}`)
  const trigger = sampleTrigger(automation, now - MINUTE_MS)
  const editor = (await options.directory.editor(automation.organizationId, automation.editorId)) ?? nobody(automation)
  return action.preview({
    automation,
    details: openDetails(options.keyring, automation),
    run: { runId: idFrom('sample', _id, now), sequence: 1, trigger, owedAt: now },
    editor,
    data: await sampleData(options.directory, automation, trigger, editor),
  })
}

const sampleData = async (
  directory: Directory,
  { organizationId, event }: AutomationRow,
  trigger: RunTrigger,
  editor: UserCaller,
): Promise<EventData> => {
  const { type, id: _id } = trigger.subject
  if (type === 'task') {
    const before = EVENTS[event].hasBefore ? { _id, state: 'new' } : null
    return { organizationId, task: { _id, organizationId, title: 'Sample task', state: TASK_STATES[event] }, before }
  }
  if (type === 'record')
    return {
      organizationId,
      record: { _id, organizationId, values: { name: 'Sample' } },
      dataType: { _id: idFrom('sample-type', _id), name: 'Sample' },
    }
  if (type === 'routingResult') {
    const state = event === 'onRoutingResultDispatched' ? 'dispatched' : 'planned'
    return { organizationId, routingResult: { _id, organizationId, state, routes: [] } }
  }
  const madeAt = formatTime(trigger.at)
  const made = { version: 1, createdAt: madeAt, updatedAt: madeAt }
  const shown = { _id, organizationId, ...made, name: 'Sample tracker', kind: 'device' }
  return trackerEventData(directory, trigger, { shown, hubIds: [] }, editor)
}

const TASK_STATES: { [event: string]: string } = {
  onTaskCreated: 'new',
  onTaskAssigned: 'assigned',
  onTaskFinished: 'finished',
}

const sampleTrigger = ({ organizationId, event, geofenceGroupId = '', _id }: AutomationRow, at: number): RunTrigger => {
  const { subject: type } = EVENTS[event]
  const subject = { type, id: idFrom('sample', type, _id) }
  const sample: RunTrigger = { sourceId: idFrom('sample', _id), event, organizationId, subject, at }
  if (type !== 'tracker') return sample
  const point = { recordedAt: at, lat: 52.2297, lng: 21.0122, speed: 8.3, heading: 90, accuracy: 5 }
  if (isGeofenceEvent(event)) {
    const geofence = { geofenceId: idFrom('sample-geofence', _id), geofenceGroupId, cause: 'point' }
    return { ...sample, point, geofence }
  }
  const isOver = event === 'onFinishTrip'
  const startedAt = at - (isOver ? 30 * MINUTE_MS : 0)
  const trip = { explicit: false, startedAt, ...(isOver && { finishedAt: at }), distance: isOver ? 12_500 : 0 }
  return { ...sample, point, trip }
}
