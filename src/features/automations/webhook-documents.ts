import type { JsonSchema } from '../../kernel/json.ts'
import { answered, UUID } from '../../kit/http/page-members.ts'
import type { WebhookDocument } from '../../kit/http/webhook-document.ts'
import type { KnownResources } from '../../kit/resource/declaration.ts'
import { EVENTS } from './event-table.ts'
import type { AutomationEvent } from './events.ts'

const SUMMARIES: { [event in AutomationEvent]: string } = {
  onTaskCreated: 'A task was created',
  onTaskAssigned: 'A task was assigned',
  onTaskFinished: 'A task was finished',
  onDataSourceCreated: 'A record was created',
  onRoutingResultFinished: 'A plan of routes is complete',
  onRoutingResultDispatched: 'The tasks of a plan of routes were assigned',
  onStartTrip: 'A tracker has started a trip',
  onFinishTrip: 'A tracker has finished a trip',
  onGeofenceEntry: 'A tracker has entered a geofence',
  onGeofenceLeave: 'A tracker has left a geofence',
}

const DESCRIPTION =
  'Sent to the url of each active automation for this event whose rules it satisfies, after Standard Webhooks 1.0. Verify the signature, act once for each `webhook-id`, and answer 2xx within 15 s.'

/** Members that an event carries unchanged; all others are resolved from references. */
const OWN: ReadonlySet<string> = new Set(['trackerId', 'at', 'point', 'trip', 'transitionId', 'geofenceId', 'cause'])
const OFTEN_ABSENT = ['user', 'point', 'geofenceGroupId']

export const webhookDocuments = (resources: Pick<KnownResources, 'declarationOf'>): WebhookDocument[] =>
  (Object.keys(EVENTS) as AutomationEvent[]).map((event) => ({
    name: event,
    summary: SUMMARIES[event],
    description: DESCRIPTION,
    payload: answered(event[0].toUpperCase() + event.slice(1), {
      type: { const: event },
      timestamp: { type: 'string', format: 'date-time', description: 'When it happened.' },
      data: dataOf(event, resources),
    }),
  }))

const dataOf = (event: AutomationEvent, resources: Pick<KnownResources, 'declarationOf'>): JsonSchema => {
  const members = Object.entries(EVENTS[event].data(resources)).map(([name, schema]) => [
    name,
    OWN.has(name) ? schema : referredTo(schema),
  ])
  return answered(
    undefined,
    {
      automationId: UUID,
      sequence: { type: 'integer', minimum: 1, description: 'Rises with each run of the automation for its subject.' },
      organizationId: UUID,
      ...Object.fromEntries(members),
    },
    OFTEN_ABSENT,
  )
}

/** A record as its GET answers at the time of the attempt, limited to the editor's visible fields. */
const referredTo = ({ title: _title, required: _required, ...schema }: JsonSchema): JsonSchema => {
  if (schema.properties === undefined) return schema
  const description =
    'As its GET answers it at the time of the attempt; only `_id` where the last editor of the automation may not see it, or where it was erased.'
  return { ...schema, description, required: ['_id'] }
}
