import { isGeofenceEvent, type RunTrigger } from '../../features/automations/events.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { MASK, openDetails } from '../../features/automations/sealed.ts'
import { renderWebhook } from './actions/webhook.ts'
import type { Directory } from './directory.ts'
import { eventData, type EventData } from './event-data.ts'

export interface DryRunRequest {
  url: string
  headers: { [name: string]: string }
  body: unknown
}

const NOBODY = { userId: '', permissions: new Set<string>() }
const MINUTE_MS = 60_000

/** The request of an automation for a sample event of a minute ago, signed like a real one; nothing is sent. */
export const dryRun = async (
  keyring: Keyring,
  directory: Directory,
  automation: AutomationRow,
  now: number,
): Promise<DryRunRequest> => {
  const trigger = sampleTrigger(automation, now - MINUTE_MS)
  const run = { runId: idFrom('sample', automation._id, now), sequence: 1, trigger }
  const configured = new Set(openDetails(keyring, automation).headers.map(({ key }) => key))
  const { url, headers, body } = renderWebhook(
    keyring,
    automation,
    run,
    await sampleData(directory, automation, trigger),
    now,
  )
  const shown = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, configured.has(name) ? MASK : value]),
  )
  return { url, headers: shown, body: JSON.parse(body) }
}

const sampleData = async (
  directory: Directory,
  { _id, organizationId, event, dataType, editorId }: AutomationRow,
  trigger: RunTrigger,
): Promise<EventData> => {
  const sampleId = idFrom('sample-record', _id)
  if (dataType === 'task')
    return {
      organizationId,
      task: { _id: sampleId, organizationId, title: 'Sample task', state: TASK_STATES[event] },
      before: event === 'onTaskCreated' ? null : { _id: sampleId, state: 'new' },
    }
  if (dataType === 'data')
    return {
      organizationId,
      record: { _id: sampleId, organizationId, values: { name: 'Sample' } },
      dataType: { _id: idFrom('sample-type', _id), name: 'Sample' },
    }
  if (dataType === 'routingResult')
    return {
      organizationId,
      routingResult: {
        _id: sampleId,
        organizationId,
        state: event === 'onRoutingResultDispatched' ? 'dispatched' : 'planned',
        routes: [],
      },
    }
  const editor = await directory.editor(organizationId, editorId)
  const tracker = {
    shown: { _id: trigger.subject.id, organizationId, name: 'Sample tracker', kind: 'device' },
    hubIds: [],
  }
  return eventData(directory, trigger, tracker, editor ?? NOBODY)
}

const TASK_STATES: { [event: string]: string } = {
  onTaskCreated: 'new',
  onTaskAssigned: 'assigned',
  onTaskFinished: 'finished',
}

const sampleTrigger = ({ organizationId, event, geofenceGroupId, _id }: AutomationRow, at: number): RunTrigger => {
  const point = { recordedAt: at, lat: 52.2297, lng: 21.0122, speed: 8.3, heading: 90, accuracy: 5 }
  const sample: RunTrigger = {
    sourceId: idFrom('sample', _id),
    event,
    organizationId,
    subject: { type: 'tracker', id: idFrom('sample-tracker', _id) },
    at,
    point,
  }
  if (isGeofenceEvent(event))
    return {
      ...sample,
      geofence: { geofenceId: idFrom('sample-geofence', _id), geofenceGroupId: geofenceGroupId ?? '', cause: 'point' },
    }
  const startedAt = at - (event === 'onFinishTrip' ? 30 * MINUTE_MS : 0)
  return {
    ...sample,
    trip: {
      explicit: false,
      startedAt,
      ...(event === 'onFinishTrip' && { finishedAt: at }),
      distance: event === 'onFinishTrip' ? 12_500 : 0,
    },
  }
}
