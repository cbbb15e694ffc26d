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
    isFirst: true,
    run: { runId: idFrom('sample', _id, now), sequence: 1, trigger, owedAt: now },
    editor,
    data: await sampleData(options.directory, automation, trigger, editor),
    isSeenBy: () => true,
  })
}

const sampleData = async (
  directory: Directory,
  { organizationId, event, rules }: AutomationRow,
  trigger: RunTrigger,
  editor: UserCaller,
): Promise<EventData> => {
  const { type, id: _id } = trigger.subject
  const madeAt = formatTime(trigger.at)
  const made = { organizationId, version: 1, createdAt: madeAt, updatedAt: madeAt }
  const hubId = editor.hubIds === 'all' ? idFrom('sample-hub', _id) : (editor.hubIds[0] ?? idFrom('sample-hub', _id))
  if (type === 'task') {
    const task = { _id, ...made, ...SAMPLE_TASK, hubId, flowId: idFrom('sample-flow', _id), state: TASK_STATES[event] }
    const before = EVENTS[event].hasBefore ? { ...task, assigneeIds: [], state: 'new' } : null
    return asRuled({ organizationId, task, before }, rules.fields)
  }
  if (type === 'record') {
    const dataTypeId = idFrom('sample-type', _id)
    const record = { _id, ...made, dataTypeId, values: { name: 'Sample' } }
    return asRuled({ organizationId, record, dataType: { _id: dataTypeId, name: 'Sample' } }, rules.fields)
  }
  if (type === 'routingResult') {
    const state = event === 'onRoutingResultDispatched' ? 'dispatched' : 'planned'
    return asRuled({ organizationId, routingResult: { _id, ...made, hubId, state, routes: [] } }, rules.fields)
  }
  const shown = { _id, ...made, name: 'Sample tracker', kind: 'device', hubId }
  return trackerEventData(directory, trigger, { shown, hubIds: [] }, editor)
}

const SAMPLE_TASK = { title: 'Sample task', assigneeIds: [], tags: [], components: {} }

/** The sample with the values that the rules ask for, where these are constants: so the automation would fire for it. */
const asRuled = (data: EventData, fields: { [path: string]: unknown }): EventData => {
  const ruled = structuredClone(data)
  for (const [path, value] of Object.entries(fields)) {
    const steps = path.split('.')
    const isPlain = typeof value !== 'object' && !steps.some((step) => step === '__proto__' || step === 'old')
    if (isPlain) put(ruled, steps, value)
  }
  return ruled
}

const put = (data: EventData, [step, ...rest]: readonly string[], value: unknown): void => {
  const member = Object.hasOwn(data, step) ? data[step] : undefined
  if (rest.length === 0)
    Object.defineProperty(data, step, { value, enumerable: true, writable: true, configurable: true })
  else if (typeof member === 'object' && member !== null) put(member as EventData, rest, value)
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
