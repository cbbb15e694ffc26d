import { EVENTS } from '../../features/automations/event-table.ts'
import { isGeofenceEvent, type RunTrigger } from '../../features/automations/events.ts'
import { openDetails } from '../../features/automations/sealed.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import type { DryRunAsked } from '../../features/automations/dry-run-asked.ts'
import { TASKS } from '../../features/tasks/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { NAMES_NOTHING } from '../../kit/resource/references.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import type { Actions } from './actions/action.ts'
import type { Directory } from './directory.ts'
import { seeEvent, trackerEventData } from './event-data.ts'
import type { EventData, Viewer } from './event-seen.ts'

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

/**
 * The effect of an automation on an event of a minute ago, as its last editor and the caller may see it; nothing is done.
 * It is about the named subject, else a sample. @throws Failure invalid for a subject that the caller or that editor does not see
 */
export const dryRun = async (
  options: DryRunOptions,
  automation: AutomationRow,
  { now, caller, subject }: DryRunAsked,
): Promise<JsonObject> => {
  const { _id, automationType } = automation
  const action = options.actions[automationType]
  if (action === undefined) throw new Error(`there is no action ${automationType}`)
  const sample = sampleTrigger(automation, now - MINUTE_MS)
  const trigger = subject === undefined ? sample : await realTrigger(options.directory, sample, subject.id)
  const editor = (await options.directory.editor(automation.organizationId, automation.editorId)) ?? nobody(automation)
  return action.preview({
    automation,
    details: openDetails(options.keyring, automation),
    isFirst: true,
    run: { runId: idFrom('sample', _id, now), sequence: 1, trigger, owedAt: now },
    editor,
    data:
      subject === undefined
        ? await sampleData(options.directory, automation, trigger, editor)
        : await realData(options.directory, trigger, { caller, editor, path: `/${subject.field}` }),
    isSeenBy: () => true,
  })
}

/** The sample's event for an existing subject, as if its last change had made it. */
const realTrigger = async (directory: Directory, sample: RunTrigger, id: string): Promise<RunTrigger> => {
  const { type } = sample.subject
  const row = type === 'task' ? await directory.subjects.row(TASKS, sample.organizationId, id) : undefined
  const hub = row?.hubId === undefined ? {} : { hubId: row.hubId as string }
  const revision = typeof row?.version === 'number' ? row.version - 1 : 0
  return { ...sample, subject: { type, id, ...hub }, revision }
}

const realData = async (
  directory: Directory,
  trigger: RunTrigger,
  { caller, editor, path }: { caller: UserCaller; editor: UserCaller; path: string },
): Promise<EventData> => {
  const seen = await seeEvent(directory, trigger, trigger.at)
  const { type, id } = trigger.subject
  const tracker = type === 'tracker' ? await directory.tracker(trigger.organizationId, id, trigger.at) : undefined
  // One that never existed has only an id.
  const isThere = type !== 'tracker' || tracker?.shown.name !== undefined
  if (!isThere || !seen.isFor(caller)) throw invalid(path, NAMES_NOTHING)
  if (!seen.isFor(editor))
    throw invalid(path, 'is hidden from the last editor of the automation: it fires for nothing else')
  return seen.data(bothViewers(caller, editor))
}

/** Sees what both of them see: the answer goes to the caller, whose role may hide what the editor's shows. */
const bothViewers = (caller: UserCaller, editor: UserCaller): Viewer => ({
  userId: caller.userId,
  permissions: new Set([...editor.permissions].filter((one) => caller.permissions.has(one))),
  permissionDetails: [...editor.permissionDetails, ...caller.permissionDetails],
})

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

/** The sample with the values that the rules require, where constant: so the automation would fire for it. */
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
