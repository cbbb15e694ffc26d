import type { TableStore } from '../../engines/table-store.ts'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { KnownTracker, TrackerName, TrackerRefusal, TrackerResolver } from './views.ts'
import { breathe } from '../../kernel/breath.ts'
import { keptText, textFault } from '../../kernel/text.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { actorOf } from '../../kit/http/request-context.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { EXTERNAL_ID_LENGTH_MAX, phoneTrackerIdOf, trackerIdOf } from './declaration.ts'
import type { TrackerValues } from './events.ts'
import type { EnsureOrigin, TrackerWriter } from './tracker-writer.ts'
import { TRACKERS_TABLE, type TrackerRow } from './views.ts'

export interface KnownTrackersOptions {
  tables: Pick<TableStore, 'getMany'>
  writer: TrackerWriter
  clock: Clock
  partitionOf: (trackerId: string) => number
  /** Trackers kept in memory. */
  trackersMax?: number
}

const TRACKERS_MAX = 500_000
const DELETED_MAX = 10_000
const LOOKUP_IDS = 100
/** Trackers that are made at the same time: so many that the log's latency does not limit them. */
const CREATIONS_MAX = 512
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Which tracker a point is of. What was met once is answered from memory; the rest is looked up in the table, and made
 * where the credential allows it: thousands of unknown ids in one frame are a fleet's normal first minute.
 */
export class KnownTrackers implements TrackerResolver {
  private readonly options: KnownTrackersOptions
  private readonly byId = new Map<string, KnownTracker>()
  private readonly byExternalId = new Map<string, Map<string, KnownTracker>>()
  private readonly phones = new Map<string, KnownTracker>()
  /** Deleted according to the log; the table may still have their rows. */
  private readonly deleted = new Set<string>()
  private readonly making = new Map<string, Promise<KnownTracker | TrackerRefusal>>()

  constructor(options: KnownTrackersOptions) {
    this.options = options
  }

  known(
    caller: Caller,
    trackerId: string | undefined,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined {
    if (caller.kind !== 'ingestKey') {
      const own = caller.kind === 'tracker' ? this.byId.get(caller.trackerId) : this.phones.get(caller.userId)
      return own === undefined ? undefined : ownOrForbidden(own, trackerId, externalId)
    }
    if (trackerId !== undefined) return this.knownById(caller.organizationId, trackerId, externalId)
    if (externalId === undefined || externalId === '' || externalId.length > EXTERNAL_ID_LENGTH_MAX) return 'invalid'
    return this.byExternalId.get(caller.organizationId)?.get(externalId)
  }

  async resolve(caller: Caller, names: readonly TrackerName[]): Promise<(KnownTracker | TrackerRefusal)[]> {
    if (caller.kind !== 'ingestKey') {
      const own = await this.resolveOwn(caller)
      return names.map(({ trackerId, externalId }) =>
        typeof own === 'string' ? own : ownOrForbidden(own, trackerId, externalId),
      )
    }
    const ids = await idsOf(caller.organizationId, names)
    const found = new Map<string, KnownTracker | TrackerRefusal>()
    await this.lookUp(caller.organizationId, ids, found)
    if (caller.autoCreate) await this.makeMissing(caller, names, ids, found)
    return names.map((name, i) => {
      const tracker = found.get(ids[i]) ?? 'unknown_tracker'
      return typeof tracker === 'string' ? tracker : agreed(tracker, name)
    })
  }

  /** The log has that the tracker was deleted: no point of it is taken, whatever the table still says. */
  noteDeleted(organizationId: string, trackerId: string): void {
    this.forget(trackerId, organizationId)
    this.deleted.add(trackerId)
    if (this.deleted.size > DELETED_MAX) this.deleted.delete(this.deleted.values().next().value as string)
  }

  noteCreated(trackerId: string): void {
    this.deleted.delete(trackerId)
  }

  private knownById(
    organizationId: string,
    trackerId: string,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined {
    const tracker = this.byId.get(trackerId) ?? this.byId.get(trackerId.toLowerCase())
    if (tracker === undefined) return undefined
    return tracker.organizationId === organizationId ? agreed(tracker, { externalId }) : 'unknown_tracker'
  }

  private async resolveOwn(caller: Exclude<Caller, { kind: 'ingestKey' }>): Promise<KnownTracker | TrackerRefusal> {
    const id = caller.kind === 'tracker' ? caller.trackerId : phoneTrackerIdOf(caller.userId)
    const found = new Map<string, KnownTracker | TrackerRefusal>()
    await this.lookUp(caller.organizationId, [id], found)
    const phone = (userId: string) =>
      this.make(caller.organizationId, id, { name: 'Phone', kind: 'phone', userId }, this.originOf(caller))
    const tracker = found.get(id) ?? (caller.kind === 'user' ? await phone(caller.userId) : 'unknown_tracker')
    if (caller.kind === 'user' && typeof tracker !== 'string') this.phones.set(caller.userId, tracker)
    return tracker
  }

  /** Adds what memory or the table knows of the ids. */
  private async lookUp(
    organizationId: string,
    ids: readonly string[],
    found: Map<string, KnownTracker | TrackerRefusal>,
  ): Promise<void> {
    const missing: string[] = []
    for (const id of new Set(ids)) {
      const known = this.byId.get(id)
      if (known !== undefined) found.set(id, known.organizationId === organizationId ? known : 'unknown_tracker')
      else if (UUID.test(id)) missing.push(id)
    }
    for (let from = 0; from < missing.length; from += LOOKUP_IDS) {
      const part = missing.slice(from, from + LOOKUP_IDS)
      const rows = await this.options.tables.getMany<TrackerRow>(TRACKERS_TABLE, organizationId, part)
      rows.forEach((row, i) => {
        if (row !== undefined && !this.deleted.has(part[i]))
          found.set(part[i], this.remember(organizationId, part[i], row.externalId))
      })
      await breathe()
    }
  }

  private async makeMissing(
    caller: Caller & { kind: 'ingestKey' },
    names: readonly TrackerName[],
    ids: readonly string[],
    found: Map<string, KnownTracker | TrackerRefusal>,
  ): Promise<void> {
    const missing = new Map<string, string>()
    names.forEach(({ trackerId, externalId }, i) => {
      if (trackerId !== undefined || externalId === undefined || found.has(ids[i])) return
      if (textFault(externalId, 'key') === undefined) missing.set(ids[i], externalId)
      else found.set(ids[i], 'invalid')
    })
    const origin = this.originOf(caller)
    const hub = caller.hubId === undefined ? {} : { hubId: caller.hubId }
    await severalAtOnce(missing, CREATIONS_MAX, async ([id, externalId]) => {
      found.set(
        id,
        await this.make(
          caller.organizationId,
          id,
          { name: keptText(externalId, 'name'), kind: 'device', externalId, ...hub },
          origin,
        ),
      )
    })
  }

  /** Frames of several connections that name one new tracker make it once. */
  private make(
    organizationId: string,
    id: string,
    values: TrackerValues,
    origin: EnsureOrigin,
  ): Promise<KnownTracker | TrackerRefusal> {
    const running = this.making.get(id)
    if (running !== undefined) return running
    const making = this.create(organizationId, id, values, origin).finally(() => this.making.delete(id))
    this.making.set(id, making)
    return making
  }

  private originOf(caller: Caller): EnsureOrigin {
    const now = this.options.clock.now()
    return { now, ids: idSource(now), metadata: { organizationId: caller.organizationId, actor: actorOf(caller) } }
  }

  private async create(
    organizationId: string,
    id: string,
    values: TrackerValues,
    origin: EnsureOrigin,
  ): Promise<KnownTracker | TrackerRefusal> {
    const made = await this.options.writer.ensure(organizationId, id, values, origin)
    if (made !== 'there') return made
    this.deleted.delete(id)
    return this.remember(organizationId, id, values.externalId)
  }

  private remember(organizationId: string, trackerId: string, externalId: string | undefined): KnownTracker {
    const known = this.byId.get(trackerId)
    if (known !== undefined) return known
    const tracker: KnownTracker = {
      trackerId,
      organizationId,
      externalId,
      partition: this.options.partitionOf(trackerId),
      mark: 0,
      index: 0,
    }
    this.byId.set(trackerId, tracker)
    if (externalId !== undefined) {
      const names = this.byExternalId.get(organizationId) ?? new Map<string, KnownTracker>()
      this.byExternalId.set(organizationId, names.set(externalId, tracker))
    }
    if (this.byId.size > (this.options.trackersMax ?? TRACKERS_MAX)) {
      const [oldest] = this.byId.values()
      this.forget(oldest.trackerId, oldest.organizationId)
    }
    return tracker
  }

  private forget(trackerId: string, organizationId: string): void {
    const tracker = this.byId.get(trackerId)
    this.byId.delete(trackerId)
    for (const [userId, phone] of tracker === undefined ? [] : this.phones)
      if (phone === tracker) this.phones.delete(userId)
    const names = this.byExternalId.get(organizationId)
    if (tracker?.externalId === undefined || names === undefined) return
    names.delete(tracker.externalId)
    if (names.size === 0) this.byExternalId.delete(organizationId)
  }
}

/** A tracker's or user's credential speaks for its own tracker alone. */
const ownOrForbidden = (
  own: KnownTracker,
  trackerId: string | undefined,
  externalId: string | undefined,
): KnownTracker | TrackerRefusal => {
  if (trackerId !== undefined && trackerId !== own.trackerId && trackerId.toLowerCase() !== own.trackerId)
    return 'forbidden_tracker'
  return externalId === undefined || externalId === own.externalId ? own : 'forbidden_tracker'
}

/** A point that carries both names must mean one tracker. */
const agreed = (tracker: KnownTracker, { externalId }: TrackerName): KnownTracker | TrackerRefusal =>
  externalId === undefined || externalId === tracker.externalId ? tracker : 'invalid'

const idsOf = async (organizationId: string, names: readonly TrackerName[]): Promise<string[]> => {
  const ids: string[] = []
  for (const name of names) {
    const pause = breathe()
    if (pause !== undefined) await pause
    ids.push(idOf(organizationId, name))
  }
  return ids
}

const idOf = (organizationId: string, { trackerId, externalId }: TrackerName): string =>
  trackerId !== undefined ? trackerId.toLowerCase() : trackerIdOf(organizationId, externalId ?? '')
