import type { TableStore } from '../../engines/table-store.ts'
import type { Caller, UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { breathe } from '../../kernel/breath.ts'
import { withoutInvisible } from '../../kernel/invisible.ts'
import { keptText, textFault } from '../../kernel/text.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { actorOf } from '../../kit/http/request-context.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { DIRECTORY } from '../../kit/consumers/projection.ts'
import { agreed, ownHub, ownOrForbidden } from './credential-rules.ts'
import { phoneTrackerIdOf } from './declaration.ts'
import type { TrackerValues } from './events.ts'
import { idsOf } from './named-ids.ts'
import type { EnsureOrigin, TrackerWriter } from './tracker-writer.ts'
import {
  isTooLong,
  type KnownTracker,
  TRACKER_USERS,
  type TrackerName,
  type TrackerRefusal,
  type TrackerResolver,
  TRACKERS_TABLE,
  type TrackerRow,
  type TrackerUserRow,
} from './views.ts'

export interface KnownTrackersOptions {
  tables: Pick<TableStore, 'getMany' | 'checkpoint'>
  writer: TrackerWriter
  clock: Clock
  partitionOf: (trackerId: string) => number
  trackersMax?: number
}

const TRACKERS_MAX = 500_000
/** Most logged changes kept because the table may not have them yet. */
const NOTED_MAX = 10_000
const LOOKUP_IDS = 100
/** Trackers created concurrently: enough that the log's latency does not limit them. */
const CREATIONS_MAX = 512
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Resolves the trackers of points. Known ones are answered from memory; the rest is looked up in the table, and created
 * if the credential allows it: thousands of unknown ids in one frame are normal in a fleet's first minute.
 */
export class KnownTrackers implements TrackerResolver {
  private readonly options: KnownTrackersOptions
  private readonly byId = new Map<string, KnownTracker>()
  private readonly byExternalId = new Map<string, Map<string, KnownTracker>>()
  private readonly phones = new Map<string, KnownTracker>()
  /** Deletions that this process has heard of; the table may still have their rows, or have them anew. */
  private readonly deleted = new Map<string, { revision: number; position: number }>()
  /** Last logged hubs of trackers; the table may still have the previous ones. */
  private readonly written = new Map<string, KnownTracker['hub']>()
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
    const tracker =
      trackerId === undefined
        ? this.knownByName(caller.organizationId, externalId)
        : this.knownById(caller.organizationId, trackerId, externalId)
    if (caller.hubId === undefined || typeof tracker !== 'object') return tracker
    if (tracker.hub === undefined) return undefined
    return tracker.hub.hubId === caller.hubId ? tracker : 'forbidden_tracker'
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
    if (caller.hubId !== undefined) await this.refuseOtherHubs(caller.organizationId, caller.hubId, found)
    return names.map((name, i) => {
      const tracker = found.get(ids[i]) ?? 'unknown_tracker'
      return typeof tracker === 'string' ? tracker : agreed(tracker, name)
    })
  }

  listed(): Promise<void> {
    return this.options.writer.listed()
  }

  /** Notes a logged deletion: no more points of the tracker are accepted while the table may still have its row. */
  noteDeleted(organizationId: string, trackerId: string, deletion: { revision: number; position: number }): void {
    this.forget(trackerId, organizationId)
    this.deleted.delete(trackerId)
    this.deleted.set(trackerId, deletion)
    if (this.deleted.size > NOTED_MAX) this.deleted.delete(this.deleted.keys().next().value as string)
  }

  /** Notes that the log has a created or changed tracker. */
  noteWritten(trackerId: string, values: TrackerValues): void {
    this.deleted.delete(trackerId)
    const hub = ownHub(values)
    const known = this.byId.get(trackerId)
    if (known !== undefined) known.hub = hub
    this.written.delete(trackerId)
    this.written.set(trackerId, hub)
    if (this.written.size > NOTED_MAX) this.written.delete(this.written.keys().next().value as string)
  }

  private knownByName(
    organizationId: string,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined {
    if (externalId === undefined || externalId === '' || isTooLong(externalId)) return 'invalid'
    return this.byExternalId.get(organizationId)?.get(externalId)
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
    const tracker = found.get(id) ?? (caller.kind === 'user' ? await this.makePhone(caller, id) : 'unknown_tracker')
    if (caller.kind === 'user' && typeof tracker !== 'string') this.phones.set(caller.userId, tracker)
    return tracker
  }

  /** A phone gets its user's name. */
  private async makePhone(caller: UserCaller, id: string): Promise<KnownTracker | TrackerRefusal> {
    const { organizationId, userId } = caller
    const [user] = await this.options.tables.getMany<TrackerUserRow>(TRACKER_USERS.name, organizationId, [userId])
    const name = user?.name ?? 'Phone'
    const values: TrackerValues = { name, kind: 'phone', userId, isNamedAfterUser: true }
    return this.make(organizationId, id, values, this.originOf(caller))
  }

  /** Adds trackers known to memory or the table. */
  private async lookUp(
    organizationId: string,
    ids: readonly string[],
    found: Map<string, KnownTracker | TrackerRefusal>,
  ): Promise<void> {
    const { tables } = this.options
    const missing: string[] = []
    for (const id of new Set(ids)) {
      const known = this.byId.get(id)
      if (known !== undefined) found.set(id, known.organizationId === organizationId ? known : 'unknown_tracker')
      else if (UUID.test(id)) missing.push(id)
    }
    for (let from = 0; from < missing.length; from += LOOKUP_IDS) {
      const part = missing.slice(from, from + LOOKUP_IDS)
      // Read before the rows, which are at least as new.
      const stored = part.some((id) => this.deleted.has(id)) ? (await tables.checkpoint(DIRECTORY))?.all : undefined
      const rows = await tables.getMany<TrackerRow>(TRACKERS_TABLE, organizationId, part)
      rows.forEach((row, i) => {
        if (row !== undefined && (this.deleted.get(part[i])?.position ?? -1) <= (stored ?? -1))
          found.set(part[i], this.remember(organizationId, part[i], row))
      })
      await breathe()
    }
  }

  /** A hub's key is valid only for that hub's trackers; the table has the hubs of phones, those of their users. */
  private async refuseOtherHubs(
    organizationId: string,
    hubId: string,
    found: Map<string, KnownTracker | TrackerRefusal>,
  ): Promise<void> {
    const phones: string[] = []
    for (const [id, tracker] of found) {
      if (typeof tracker === 'string') continue
      if (tracker.hub === undefined) phones.push(id)
      else if (tracker.hub.hubId !== hubId) found.set(id, 'forbidden_tracker')
    }
    for (let from = 0; from < phones.length; from += LOOKUP_IDS) {
      const part = phones.slice(from, from + LOOKUP_IDS)
      const rows = await this.options.tables.getMany<TrackerRow>(TRACKERS_TABLE, organizationId, part)
      for (const [i, row] of rows.entries())
        if (row?.hubIds.includes(hubId) !== true) found.set(part[i], 'forbidden_tracker')
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
          { name: withoutInvisible(keptText(externalId, 'name')), kind: 'device', externalId, ...hub },
          origin,
        ),
      )
    })
  }

  /** Frames of several connections that name one new tracker create it once. */
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
    if (typeof made === 'string') return made
    // The log may have reported its deletion meanwhile.
    if ((this.deleted.get(id)?.revision ?? -1) >= made.version) return 'unknown_tracker'
    this.deleted.delete(id)
    return this.remember(organizationId, id, made.values)
  }

  private remember(organizationId: string, trackerId: string, values: TrackerValues): KnownTracker {
    const known = this.byId.get(trackerId)
    if (known !== undefined) return known
    const { externalId } = values
    const tracker: KnownTracker = {
      trackerId,
      organizationId,
      externalId,
      hub: this.written.has(trackerId) ? this.written.get(trackerId) : ownHub(values),
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
