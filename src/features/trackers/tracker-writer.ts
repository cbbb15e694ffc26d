import { allEnded } from '../../kernel/all-ended.ts'
import { Failure } from '../../kernel/errors.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { appendFacts } from '../../kit/commands/handle-command.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { IdSource, Settlement, Wrote } from '../../kit/http/route.ts'
import { type TakePlace, withinQuotas } from '../../kit/quotas/quotas.ts'
import type { ResourceServices, WriteContext } from '../../kit/resource/declaration.ts'
import type { ResourceState } from '../../kit/resource/decider.ts'
import { ResourceWriter } from '../../kit/resource/write.ts'
import type { Change, Deletion, ResourceWrites, WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { ANNOUNCE_DELETIONS, locationStream, partitionOf } from '../locations/events.ts'
import { latestPositionCheckpoint } from '../locations/views.ts'
import { tracker } from './declaration.ts'
import { TRACKER, TRACKER_STREAMS, type TrackerValues } from './events.ts'
import { isNamedAfterUser, TRACKERS_TABLE, type TrackerRow } from './views.ts'

const TRIES = 5
const FORGET_TIMEOUT_MS = 2_000
const LISTED_TIMEOUT_MS = 10_000

/** Effects of a tracker's deletion: it is announced in the tracker's partition, and its last position is removed. */
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

export interface TrackerWriterServices extends ResourceServices {
  partitions: number
  settle: Settle
}

/** Writes of trackers: by users through the API, and by the service for unknown external ids and for phones. */
export class TrackerWriter implements ResourceWrites {
  private readonly resource: ResourceWriter
  private readonly services: TrackerWriterServices
  /** Log position of the last tracker that was created for a point. */
  private ensuredAt = -1

  constructor(services: TrackerWriterServices) {
    this.services = services
    const { declaration } = tracker
    this.resource = new ResourceWriter(
      { ...declaration, rules: { ...declaration.rules, checks: (write) => this.checks(write) } },
      services,
    )
  }

  /** @throws Failure invalid, conflict, key_in_use, quota. */
  create(origin: WriteOrigin, body: JsonObject): Promise<Written> {
    return this.resource.create(origin, body)
  }

  /** A phone has its user's name until it is renamed. */
  async change(origin: WriteOrigin, change: Change): Promise<Written> {
    const row = await this.services.tables.get<TrackerRow>(TRACKERS_TABLE, origin.organizationId, change.id)
    if (row === undefined || !isNamedAfterUser(row)) return this.resource.change(origin, change)
    const { name = row.name } = change.body
    const isSame = name === row.name
    return this.resource.change(origin, change, isSame ? { name, isNamedAfterUser: true } : { isNamedAfterUser: false })
  }

  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    return this.resource.delete(origin, deletion)
  }

  /** Creates the tracker unless it exists; returns it and its number of events. @throws Failure engine_down. */
  async ensure(
    organizationId: string,
    id: string,
    values: TrackerValues,
    origin: EnsureOrigin,
  ): Promise<Ensured | 'tracker_limit' | 'unknown_tracker'> {
    const { ensured } = await withinQuotas(this.services.quotas, organizationId, (take) =>
      this.made({ organizationId, ...origin }, id, values, take),
    )
    return ensured
  }

  private async made(
    writes: EnsureOrigin & { organizationId: string },
    id: string,
    values: TrackerValues,
    take: TakePlace,
  ): Promise<{ ensured: Ensured | 'tracker_limit' | 'unknown_tracker'; wrote?: Wrote }> {
    const hasPlace = await take(TRACKERS_TABLE).then(() => true, isNoPlace)
    const data = dataOf(writes, { ...values })
    // Nearly always it is new: reading its stream first would double the work of a fleet's first minute.
    const first = hasPlace ? await this.append(id, 0, data, writes) : undefined
    if (first !== undefined) return { ensured: { values, version: 1 }, wrote: first }
    for (let tries = 0; tries < TRIES; tries++) {
      const { state, version } = await this.resource.load(id)
      if (state.status === 'live') return { ensured: thatIsThere(writes.organizationId, { state, version }) }
      if (!hasPlace) return { ensured: 'tracker_limit' }
      if (state.status === 'deleted') await this.untilForgotten(id)
      const wrote = await this.append(id, version, data, writes)
      if (wrote !== undefined) return { ensured: { values, version: version + 1 }, wrote }
    }
    throw new Failure('engine_down', { message: 'A tracker could not be made in five tries.' })
  }

  /** Resolves when lists have all trackers created for points so far; also after 10 s, or while the tables are down. */
  async listed(): Promise<void> {
    const wrote = { position: this.ensuredAt, types: [TRACKER.created] }
    await this.services.settle(wrote, LISTED_TIMEOUT_MS).catch(() => false)
  }

  private async checks(write: WriteContext): Promise<void> {
    await allEnded([
      tracker.declaration.rules?.checks?.(write),
      write.before === undefined ? this.untilForgotten(write.id) : undefined,
    ])
  }

  /** Points of a recreated tracker must be neither attributed to the previous one nor removed with it. */
  private async untilForgotten(id: string): Promise<void> {
    const { log, settle, partitions } = this.services
    const [last] = await log.read(TRACKER_STREAMS + id, 'end', 1, 'backwards')
    if (last === undefined) return
    await settle({ position: last.position, types: [] }, FORGET_TIMEOUT_MS, forgotten(id, partitions))
  }

  /** Undefined if the stream has other events since. */
  private async append(
    id: string,
    version: number,
    data: ResourceData,
    { ids, metadata }: { ids: IdSource; metadata: EventMetadata },
  ): Promise<Wrote | undefined> {
    const wrote = await appendFacts(
      this.services.log,
      TRACKER_STREAMS + id,
      [{ type: TRACKER.created, data }],
      [ids.next()],
      version,
      metadata,
    )
    if (wrote !== undefined) this.ensuredAt = Math.max(this.ensuredAt, wrote.position)
    return wrote
  }
}

const isNoPlace = (error: unknown): false => {
  if (error instanceof Failure && error.code === 'quota') return false
  throw error
}

const thatIsThere = (
  organizationId: string,
  { state, version }: { state: ResourceState; version: number },
): Ensured | 'unknown_tracker' =>
  state.organizationId === organizationId
    ? { values: state.values as unknown as TrackerValues, version }
    : 'unknown_tracker'

/** An existing tracker, and its number of events at that time. */
export interface Ensured {
  values: TrackerValues
  version: number
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
