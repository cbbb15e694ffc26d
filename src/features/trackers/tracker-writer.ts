import { isDeepStrictEqual } from 'node:util'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { rowOf, type ResourceData } from '../../kit/commands/declared-event.ts'
import { appendFacts } from '../../kit/commands/handle-command.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { withDefaults } from '../../kit/resource/declaration.ts'
import type { ResourceState } from '../../kit/resource/rows.ts'
import { ResourceWriter, type WriteOrigin, type Written } from '../../kit/resource/write.ts'
import type { IdSource, Settlement } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { ANNOUNCE_DELETIONS, locationStream, partitionOf } from '../locations/events.ts'
import { latestPositionCheckpoint } from '../locations/views.ts'
import { createdTracker, storedTracker } from './declaration.ts'
import { makeDeviceKey } from './device-key.ts'
import { TRACKER, TRACKER_STREAMS, type TrackerValues } from './events.ts'
import type { TrackerQuota } from './tracker-quota.ts'

/** The id of the tracker that an organization calls so: it never changes. */
export const trackerIdOf = (organizationId: string, externalId: string): string =>
  idFrom('tracker', organizationId, externalId)

/** The id of a user's phone tracker. */
export const phoneTrackerIdOf = (userId: string): string => idFrom('phone', userId)

const TRIES = 5
const FORGET_TIMEOUT_MS = 2_000

/** What follows a tracker's deletion: it is said in the tracker's partition, and its last position is forgotten. */
export const forgotten = (trackerId: string, partitions: number): Settlement[] => {
  const partition = partitionOf(trackerId, partitions)
  return [
    { consumer: ANNOUNCE_DELETIONS },
    {
      consumer: latestPositionCheckpoint(partition),
      stream: locationStream(partition),
      source: String(partition),
    },
  ]
}

export interface TrackerWriterServices extends Pick<Services, 'log' | 'tables' | 'keyring' | 'partitions'> {
  settle: Settle
}

/** The writes of trackers: by users through the API, and by the service for unknown external ids and for phones. */
export class TrackerWriter {
  /** Replaces, amends and deletes. */
  readonly resource: ResourceWriter
  private readonly services: TrackerWriterServices
  private readonly quota: TrackerQuota

  constructor(services: TrackerWriterServices, quota: TrackerQuota) {
    this.services = services
    this.quota = quota
    this.resource = new ResourceWriter(storedTracker, services)
  }

  /**
   * Makes a tracker and its device key, which is told once. The same `_id` and body again answer what is there.
   * @throws Failure invalid, conflict, tracker_limit.
   */
  async create(origin: WriteOrigin, body: JsonObject): Promise<Written & { deviceKey?: string }> {
    const { _id, ...rest } = body
    const id = idOfCreate(origin, _id as string | undefined, rest.externalId as string | undefined)
    const values = withDefaults(createdTracker.fields, rest)
    const { state, version } = await this.resource.load(id)
    if (state.status === 'live' || (state.status === 'deleted' && values.externalId === undefined))
      return repeated(origin, id, values, state, version)
    await storedTracker.checks?.({
      services: this.services,
      caller: origin.caller,
      organizationId: origin.organizationId,
      id,
      values,
    })
    if (state.status === 'deleted') await this.untilForgotten(id)
    if (!(await this.quota.reserve(origin.organizationId, id))) throw new Failure('tracker_limit')
    const { key, keyHash } = makeDeviceKey(this.services.keyring, id)
    const wrote = await this.append(TRACKER.created, id, version, dataOf(origin, { ...values, keyHash }), origin)
    if (wrote === undefined) {
      await this.quota.release(origin.organizationId, id)
      throw new Failure('conflict', { message: 'The same tracker was made at this moment; read it.' })
    }
    return { row: wrote.row, wrote: wrote.wrote, deviceKey: key }
  }

  /** Gives the tracker another device key; the one before ends at once. @throws Failure not_found, conflict after five lost races. */
  async rotateKey(origin: WriteOrigin, id: string): Promise<Written & { deviceKey: string }> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { state, version } = await this.resource.load(id)
      if (state.status !== 'live' || state.organizationId !== origin.organizationId) throw new Failure('not_found')
      const { key, keyHash } = makeDeviceKey(this.services.keyring, id)
      const data = { ...dataOf(origin, { ...state.values, keyHash }), createdAt: state.createdAt }
      const wrote = await this.append(TRACKER.changed, id, version, data, origin)
      if (wrote !== undefined) return { row: wrote.row, wrote: wrote.wrote, deviceKey: key }
    }
    throw new Failure('conflict', {
      message: 'Others are changing this at the same time; try again.',
      retryAfterSeconds: 1,
    })
  }

  /** Makes the tracker unless it is there. @throws Failure engine_down. */
  async ensure(
    organizationId: string,
    id: string,
    values: TrackerValues,
    origin: EnsureOrigin,
  ): Promise<'there' | 'tracker_limit' | 'unknown_tracker'> {
    const hasPlace = await this.quota.reserve(organizationId, id)
    const writes = { organizationId, ...origin }
    try {
      const data = dataOf(writes, { ...values })
      // Nearly always it is new: reading its stream first would double the work of a fleet's first minute.
      if (hasPlace && (await this.append(TRACKER.created, id, 0, data, writes)) !== undefined) return 'there'
      for (let tries = 0; tries < TRIES; tries++) {
        const { state, version } = await this.resource.load(id)
        if (state.status === 'live') return this.isThere(organizationId, id, state)
        if (!hasPlace) return 'tracker_limit'
        if (state.status === 'deleted') await this.untilForgotten(id)
        if ((await this.append(TRACKER.created, id, version, data, writes)) !== undefined) return 'there'
      }
      throw new Failure('engine_down', { message: 'A tracker could not be made in five tries.' })
    } catch (error) {
      if (hasPlace) await this.quota.release(organizationId, id)
      throw error
    }
  }

  /** Points of a tracker made anew must not be taken for those of the one before, nor be forgotten with it. */
  private async untilForgotten(id: string): Promise<void> {
    const { log, settle, partitions } = this.services
    const [last] = await log.read(TRACKER_STREAMS + id, 'end', 1, 'backwards')
    if (last === undefined) return
    await settle({ position: last.position, types: [] }, FORGET_TIMEOUT_MS, forgotten(id, partitions))
  }

  private async isThere(
    organizationId: string,
    id: string,
    state: ResourceState,
  ): Promise<'there' | 'unknown_tracker'> {
    await this.quota.release(organizationId, id)
    return state.organizationId === organizationId ? 'there' : 'unknown_tracker'
  }

  private async append(
    type: string,
    id: string,
    version: number,
    data: ResourceData,
    { ids, metadata }: { ids: IdSource; metadata: EventMetadata },
  ): Promise<Written | undefined> {
    const wrote = await appendFacts(
      this.services.log,
      TRACKER_STREAMS + id,
      [{ type, data }],
      [ids.next()],
      version,
      metadata,
    )
    return wrote === undefined ? undefined : { wrote, row: rowOf(id, version + 1, { ...data, updatedAt: data.at }) }
  }
}

export interface EnsureOrigin {
  now: number
  ids: IdSource
  metadata: EventMetadata
  caller?: UserCaller
}

const dataOf = (
  { organizationId, now }: { organizationId: string; now: number },
  values: { [field: string]: unknown },
): ResourceData => {
  const at = formatTime(now)
  return { organizationId, values: values as JsonObject, createdAt: at, at }
}

const idOfCreate = (origin: WriteOrigin, _id: string | undefined, externalId: string | undefined): string => {
  if (externalId === undefined) return _id?.toLowerCase() ?? origin.ids.next()
  const id = trackerIdOf(origin.organizationId, externalId)
  if (_id !== undefined && _id.toLowerCase() !== id) throw invalid('/_id', 'follows from externalId; leave it out')
  return id
}

/** Answers a create that was answered before, without its key; another one under a taken id is refused. */
const repeated = (
  origin: WriteOrigin,
  id: string,
  values: JsonObject,
  state: ResourceState,
  version: number,
): Written => {
  const { keyHash: _hash, ...first } = state.first.values
  const isSame =
    state.status === 'live' && state.organizationId === origin.organizationId && isDeepStrictEqual(values, first)
  if (isSame) return { row: rowOf(id, version, state) as Row }
  const path = values.externalId === undefined ? '/_id' : '/externalId'
  throw new Failure(values.externalId === undefined ? 'conflict' : 'key_in_use', {
    message: `${path} is taken by another tracker.`,
    errors: [{ path, message: 'is taken' }],
  })
}
