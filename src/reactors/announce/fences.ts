import {
  GEOFENCE_PREFIX,
  GROUP_CHANGED,
  GROUP_CREATED,
  GROUP_DELETED,
  GROUP_PREFIX,
} from '../../features/geofences/events.ts'
import {
  ANNOUNCE_FENCES,
  FENCES_CHANGED,
  type FencesChanged,
  locationStream,
  type MatchingSettings,
} from '../../features/locations/events.ts'
import { breathe } from '../../kernel/breath.ts'
import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { Services } from '../../kit/services.ts'
import { MATCHER_STATE } from '../matcher/store.ts'

const SETTINGS_ROW = 'announced-settings'
/** Events held at once: a geofence may have 0.6 MB. */
const BATCH_EVENTS = 512
const GROUP_TYPES: readonly string[] = [GROUP_CREATED, GROUP_CHANGED, GROUP_DELETED]

type AnnouncerServices = FollowerServices & Pick<Services, 'log' | 'tables' | 'partitions'>

/**
 * Announces in every partition from which place on an edit of geofences or groups counts, and before that the settings
 * where they differ from the last announcement. Follows the streams of geofences and groups; simultaneous edits go into
 * one event for each organization and moment. After a failure it may repeat itself: readers recognize an old
 * announcement by its `sourcePosition`.
 */
export const announceFences = async (services: AnnouncerServices, settings: MatchingSettings): Promise<Follower> => {
  await services.tables.declare(MATCHER_STATE)
  await announceSettings(services, settings)
  return new Follower(services, {
    name: ANNOUNCE_FENCES,
    source: { prefixes: [GEOFENCE_PREFIX, GROUP_PREFIX] },
    batchEventsMax: BATCH_EVENTS,
    handle: async ({ events }) => {
      const changes = await changesOf(events)
      if (changes.length === 0) return
      await append(services, changes)
      return []
    },
  }).start(services.tables)
}

const announceSettings = async (services: AnnouncerServices, settings: MatchingSettings): Promise<void> => {
  const { tables, clock } = services
  const told = await tables.get<MatchingSettings & Row>(MATCHER_STATE.name, ANNOUNCE_FENCES, SETTINGS_ROW)
  const isTold =
    told?.tripStopMs === settings.tripStopMs &&
    told.tripGapMs === settings.tripGapMs &&
    String(told.rollout) === String(settings.rollout)
  if (isTold) return
  const change = { organizationId: '*', at: clock.now(), sourcePosition: -1, geofences: [], groups: [], settings }
  await append(services, [change])
  await tables.commit([{ table: MATCHER_STATE.name, scope: ANNOUNCE_FENCES, id: SETTINGS_ROW, row: { ...settings } }])
}

const append = async ({ log, partitions }: AnnouncerServices, changes: readonly FencesChanged[]): Promise<void> => {
  const encoded = changes.map(encodeJson)
  const eventsOf = (partition: number): NewEvent[] =>
    changes.map((change, i) => ({
      id: idOf(partition, changes, i),
      type: FENCES_CHANGED,
      data: encoded[i],
      isJson: true,
      metadata: { organizationId: change.organizationId, actor: `reactor:${ANNOUNCE_FENCES}` },
    }))
  await Promise.all(
    Array.from({ length: partitions }, (_, partition) =>
      log.append(locationStream(partition), eventsOf(partition), 'any'),
    ),
  )
}

/** Derived from the whole append: cut differently after a crash it has other ids, so none mixes known and new ones. */
const idOf = (partition: number, changes: readonly FencesChanged[], index: number): string => {
  const { settings, at, sourcePosition } = changes[0]
  if (settings !== undefined) return idFrom(ANNOUNCE_FENCES, partition, 'settings', at)
  const last = changes[changes.length - 1].sourcePosition
  return idFrom(ANNOUNCE_FENCES, partition, sourcePosition, last, index)
}

/** One change for each run of edits of one organization at one moment (as those of an import). */
const changesOf = async (events: readonly RecordedEvent[]): Promise<FencesChanged[]> => {
  const changes: FencesChanged[] = []
  /** Names of the last change, by stream: the last of several edits of one thing counts. */
  let named = new Map<string, { revision: number }>()
  for (const event of events) {
    const pause = breathe()
    if (pause !== undefined) await pause
    const { organizationId, at: time } = decodeJson<{ organizationId: string; at: number | string }>(event.data)
    const at = typeof time === 'number' ? time : Date.parse(time)
    let change = changes.at(-1)
    if (change === undefined || change.organizationId !== organizationId || change.at !== at) {
      change = { organizationId, at, sourcePosition: event.position, geofences: [], groups: [] }
      changes.push(change)
      named = new Map()
    }
    change.sourcePosition = event.position
    const known = named.get(event.stream)
    if (known === undefined) named.set(event.stream, put(change, event))
    else known.revision = event.revision
  }
  return changes
}

const put = ({ geofences, groups }: FencesChanged, { type, stream, revision }: RecordedEvent): { revision: number } => {
  const id = idOfStream(stream)
  if (GROUP_TYPES.includes(type)) return groups[groups.push({ geofenceGroupId: id, revision }) - 1]
  return geofences[geofences.push({ geofenceId: id, revision }) - 1]
}
