import { answered, DATE_TIME, STREAM_PAGE_MEMBERS, envelope, UUID } from '../../kit/http/page-members.ts'
import type { Answer } from '../../kit/http/route.ts'
import { FIELDS_PARAMETER } from '../../kit/http/list-query.ts'
import { boundsSchema } from '../../kit/http/time-parameter.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { REPORT_FORMATS } from './answer.ts'

const SECONDS: JsonSchema = { type: 'number', description: 'Seconds.' }
const COUNT: JsonSchema = { type: 'integer' }
const MINUTES: JsonSchema = { type: ['number', 'null'], description: 'Minutes; null where there is none.' }
const SPEED: JsonSchema = { type: ['number', 'null'], description: 'Metres a second; null where nothing tells it.' }
const PLACE: { [name: string]: JsonSchema } = { lat: { type: 'number' }, lng: { type: 'number' } }

export const SUMMARY_ROW = answered(
  'SummaryReportRow',
  {
    trackerId: UUID,
    name: { type: 'string', description: 'Of the tracker; absent where it is deleted.' },
    period: { type: 'string', description: '`2026-03-29`, `2026-W13`, `2026-03` or `total`.' },
    distanceMeters: { type: 'number' },
    drivingSeconds: { ...SECONDS, description: 'Seconds between points in which it was faster than 1 m/s.' },
    stoppedSeconds: { ...SECONDS, description: 'Seconds between points in which it was not.' },
    trips: { ...COUNT, description: 'Trips that began.' },
    maxSpeed: SPEED,
    averageSpeed: { ...SPEED, description: `${SPEED.description} While it drove.` },
    firstAt: DATE_TIME,
    lastAt: DATE_TIME,
  },
  ['name'],
)

export const STOP_ROW = answered(
  'StopReportRow',
  {
    trackerId: UUID,
    from: DATE_TIME,
    to: DATE_TIME,
    seconds: SECONDS,
    ...PLACE,
    geofenceIds: {
      type: 'array',
      items: UUID,
      description: 'Geofences in force there; absent for callers who see none.',
    },
  },
  ['geofenceIds'],
)

export const VISIT_ROW = answered(
  'VisitReportRow',
  {
    trackerId: UUID,
    geofenceId: UUID,
    enteredAt: DATE_TIME,
    leftAt: { ...DATE_TIME, description: 'Absent where it had not left by `to`.' },
    seconds: { ...SECONDS, description: 'Seconds, of one that is open so far.' },
  },
  ['leftAt'],
)

export const SPEEDING_ROW = answered(
  'SpeedingReportRow',
  {
    trackerId: UUID,
    from: DATE_TIME,
    to: DATE_TIME,
    seconds: SECONDS,
    maxSpeed: { type: 'number', description: 'Metres a second.' },
    limit: { type: 'number', description: 'Metres a second.' },
    geofenceId: { ...UUID, description: 'Whose limit it is; absent for `speedLimit`.' },
    lat: { type: 'number', description: 'Where it began.' },
    lng: { type: 'number', description: 'Where it began.' },
  },
  ['geofenceId'],
)

export const TASK_ROW = answered('TaskReportRow', {
  key: { type: ['string', 'null'], description: 'Null: nobody, or no team.' },
  created: COUNT,
  finished: COUNT,
  cancelled: COUNT,
  late: { ...COUNT, description: 'Of the finished ones, after the end of their window.' },
  onTime: { ...COUNT, description: 'Of the finished ones, not after it.' },
  meanMinutesToStart: {
    ...MINUTES,
    description: `From their creation, of those that were started. ${MINUTES.description}`,
  },
  meanMinutesOfWork: { ...MINUTES, description: `From start to finish, of the finished ones. ${MINUTES.description}` },
})

const TRACKER_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'
const GEOFENCE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b'

export const EXAMPLES = {
  summary: {
    trackerId: TRACKER_ID,
    name: 'Bus 12',
    period: '2026-05-04',
    distanceMeters: 84_210.5,
    drivingSeconds: 11_040,
    stoppedSeconds: 17_760,
    trips: 6,
    maxSpeed: 22.4,
    averageSpeed: 7.61,
    firstAt: '2026-05-04T06:00:00.000Z',
    lastAt: '2026-05-04T14:00:00.000Z',
  },
  stops: {
    trackerId: TRACKER_ID,
    from: '2026-05-04T09:30:00.000Z',
    to: '2026-05-04T09:42:30.000Z',
    seconds: 750,
    lat: 52.2296756,
    lng: 21.0122287,
    geofenceIds: [GEOFENCE_ID],
  },
  visits: {
    trackerId: TRACKER_ID,
    geofenceId: GEOFENCE_ID,
    enteredAt: '2026-05-04T09:30:00.000Z',
    leftAt: '2026-05-04T09:42:30.000Z',
    seconds: 750,
  },
  speeding: {
    trackerId: TRACKER_ID,
    from: '2026-05-04T09:20:00.000Z',
    to: '2026-05-04T09:20:40.000Z',
    seconds: 40,
    maxSpeed: 17.2,
    limit: 13.89,
    geofenceId: GEOFENCE_ID,
    lat: 52.2296756,
    lng: 21.0122287,
  },
  tasks: {
    key: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
    created: 42,
    finished: 38,
    cancelled: 2,
    late: 3,
    onTime: 33,
    meanMinutesToStart: 95.5,
    meanMinutesOfWork: 12.25,
  },
} as const

export const membersOf = (row: JsonSchema): string[] => Object.keys(row.properties as object)

export const timesOf = (row: JsonSchema): ReadonlySet<string> =>
  new Set(
    membersOf(row).filter(
      (member) => (row.properties as { [name: string]: JsonSchema })[member].format === 'date-time',
    ),
  )

/** Several ids, repeated or separated by commas. */
const ids = (description: string, max = 500): JsonSchema => ({
  type: 'array',
  minItems: 1,
  maxItems: max,
  items: UUID,
  'x-commas': true,
  description: `${description} Several: any of them, repeated or separated by commas.`,
})

export const GEOFENCE_FILTERS: { [name: string]: JsonSchema } = {
  geofenceId: ids('Visits to this geofence.'),
  geofenceGroupId: ids('Visits to geofences that were of this group then.'),
}

export const PEOPLE_FILTERS: { [name: string]: JsonSchema } = {
  userId: ids('Tasks that this user is assigned to.'),
  hubId: ids('Tasks of this hub.'),
  teamId: ids('Tasks of this team.'),
}

export const TRACKER_FILTERS: { [name: string]: JsonSchema } = {
  trackerId: ids('This tracker.', 1_000),
  userId: ids('Trackers that this user has now.'),
  vehicleId: ids('Trackers that this vehicle has now.'),
  hubId: ids('Trackers of this hub; phones of users who have the hub belong to it too.'),
  teamId: ids('Trackers of this team.'),
}

export const GROUPS_OF_LIMITS: JsonSchema = ids(
  'In place of `speedLimit`: the limits are those of the geofences of this group, whose `attributes.speedLimit` is in km/h; where several hold, the lowest.',
)

export const TIME_ZONE: JsonSchema = {
  type: 'string',
  format: 'time-zone',
  maxLength: 64,
  description: 'IANA time zone whose days count, and that of the times in `xlsx`; left out: that of the organization.',
}

/** The engine is asked for one more, which must be a number that JSON can hold. */
const LIMIT_MAX = Number.MAX_SAFE_INTEGER - 1

export const querySchema = (own: { [name: string]: JsonSchema }): JsonSchema => {
  const { from, to } = boundsSchema('What was')
  return {
    type: 'object',
    properties: {
      from,
      to: { ...to, description: `${to.description} At most 400 days after \`from\`.` },
      ...own,
      format: {
        type: 'string',
        enum: Object.keys(REPORT_FORMATS),
        default: 'json',
        description: 'Chooses the content type.',
      },
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: LIMIT_MAX,
        description: 'Left out: 500 in json, everything in the other formats.',
      },
      cursor: {
        type: 'string',
        maxLength: 500,
        description:
          '`nextCursor` of the page before; also the `Link` header of a page of up to 2 MiB names it, in every format.',
      },
      fields: { ...FIELDS_PARAMETER, description: 'Names of the members to answer, separated by commas.' },
    },
    required: ['from', 'to'],
    additionalProperties: false,
  }
}

/** Media types besides that of `json`. */
const FURTHER: Answer['alsoAs'] = Object.fromEntries(
  Object.entries(REPORT_FORMATS)
    .filter(([format]) => format !== 'json')
    .map(([, { contentType }]) => [contentType.split(';')[0], undefined]),
)

export const answerOf = (row: JsonSchema, example: unknown): Answer => ({
  description: 'The rows, as a stream.',
  schema: {
    title: String(row.title).replace(/Row$/, 'Page'),
    ...envelope({ data: { type: 'array', items: row }, ...STREAM_PAGE_MEMBERS }),
  },
  example: { status: true, data: [example], page: null, limit: 500, nextCursor: null },
  alsoAs: FURTHER,
  headers: ['Content-Disposition'],
})
