import { join } from 'node:path'
import { openGappedLog } from './gapped-log.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { EventLog } from '../../src/engines/event-log.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { geofence } from '../../src/features/geofences/geofence.ts'
import {
  geofenceStream,
  groupStream,
  GROUP_CHANGED,
  GROUP_CREATED,
  type GeofenceValues,
  type GroupRules,
} from '../../src/features/geofences/events.ts'
import {
  FENCES_CHANGED,
  POINTS_RECORDED,
  TRACKER_DELETED,
  locationStream,
  type FencesChanged,
  type PointBatch,
} from '../../src/features/locations/events.ts'
import { locationEntry } from '../../src/features/locations/location-entry.ts'
import { encodePointBatch } from '../../src/features/locations/point-batch-codec.ts'
import {
  DECIDED,
  transitionStream,
  type Decided,
  type Decision,
  type Transition,
  type TripChange,
} from '../../src/features/transitions/events.ts'
import { handleCommand } from '../../src/kit/commands/handle-command.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import { decodeJson, encodeJson } from '../../src/kernel/event.ts'
import { GeofenceMatcher, type MatcherOptions } from '../../src/reactors/matcher/match-geofences.ts'
import { FakeClock } from './fake-clock.ts'

export const ORG = '0190f3a2-7c00-7a11-8b22-aabbccddeeff'

/** A log and tables in a folder, with words for what a matcher's test does to them. */
export class MatcherWorld {
  readonly clock: FakeClock
  private readonly ids = idSource(0)

  readonly log: EventLog
  readonly tables: TableStore

  private constructor(log: EventLog, tables: TableStore, clock: FakeClock) {
    this.clock = clock
    this.log = log
    this.tables = tables
  }

  static async open(folder: string): Promise<MatcherWorld> {
    const clock = new FakeClock()
    return new MatcherWorld(
      await openGappedLog({ path: join(folder, 'log'), clock }),
      await openLmdbTableStore({ path: join(folder, 'tables'), clock }),
      clock,
    )
  }

  async close(): Promise<void> {
    await this.log.close()
    await this.tables.close()
  }

  matcher(options: MatcherOptions = {}): GeofenceMatcher {
    return new GeofenceMatcher({ log: this.log, tables: this.tables, clock: this.clock }, options)
  }

  /** Writes a group's rules; announces nothing. */
  async putGroup(
    geofenceGroupId: string,
    rules: GroupRules,
  ): Promise<{ geofenceGroupId: string; revision: number; position: number }> {
    const head = await this.log.head(groupStream(geofenceGroupId))
    const data = { organizationId: ORG, values: { name: 'group', ...rules }, createdAt: '', at: '' }
    const event = {
      id: this.ids.next(),
      type: head < 0 ? GROUP_CREATED : GROUP_CHANGED,
      data: encodeJson(data),
      isJson: true,
      metadata: {},
    }
    const { revision, position } = await this.log.append(
      groupStream(geofenceGroupId),
      [event],
      head < 0 ? 'none' : head,
    )
    return { geofenceGroupId, revision, position }
  }

  async putFence(
    geofenceId: string,
    values: Partial<GeofenceValues> | null,
  ): Promise<{ geofenceId: string; revision: number; position: number }> {
    const stream = geofenceStream(geofenceId)
    const head = await this.log.head(stream)
    const context = { ids: this.ids, metadata: {} }
    const full = { name: 'fence', geofenceGroupId: 'group', isActive: true, ...values } as GeofenceValues
    const command =
      values === null
        ? ({ kind: 'delete', organizationId: ORG, at: 0 } as const)
        : ({ kind: head < 0 ? 'create' : 'change', organizationId: ORG, values: full, at: 0 } as const)
    const { version, wrote } = await handleCommand(this.log, stream, geofence, command, context)
    return { geofenceId, revision: version - 1, position: wrote?.position ?? -1 }
  }

  /** Says in one partition what counts from here on. */
  announce(partition: number, change: Partial<FencesChanged> & { sourcePosition: number }): Promise<unknown> {
    return this.append(
      partition,
      FENCES_CHANGED,
      encodeJson({ organizationId: ORG, at: 1_000, geofences: [], groups: [], ...change }),
      true,
    )
  }

  points(partition: number, batch: PointBatch): Promise<unknown> {
    return this.append(partition, POINTS_RECORDED, encodePointBatch(batch), false)
  }

  deleteTracker(partition: number, trackerId: string, at: number): Promise<unknown> {
    return this.append(partition, TRACKER_DELETED, encodeJson({ organizationId: ORG, trackerId, at }), true)
  }

  /** Loads the matcher and lets it handle all that is there. */
  async run(matcher: GeofenceMatcher, partition: number, through = Number.POSITIVE_INFINITY): Promise<void> {
    let at = await matcher.load(partition)
    for (;;) {
      const events = await this.log.read(locationStream(partition), at + 1, 64)
      if (events.length === 0) break
      for (const event of events) {
        if (event.revision > through) return
        await matcher.handle(locationEntry(event, partition), partition)
        at = event.revision
      }
    }
  }

  async decisions(partition: number): Promise<(Decision & { sourceRevision: number; ordinal: number })[]> {
    const decisions: (Decision & { sourceRevision: number; ordinal: number })[] = []
    for (let from = 0; ; ) {
      const events = await this.log.read(transitionStream(partition), from, 200)
      if (events.length === 0) return decisions
      for (const event of events) {
        if (event.type !== DECIDED) continue
        const decided = decodeJson<Decided>(event.data)
        for (const [i, decision] of decided.decisions.entries())
          decisions.push({ ...decision, sourceRevision: decided.sourceRevision, ordinal: decided.ordinal + i })
      }
      from = events[events.length - 1].revision + 1
    }
  }

  async transitions(partition: number): Promise<Transition[]> {
    return (await this.decisions(partition)).filter((decision) => decision.kind === 'transition')
  }

  async trips(partition: number): Promise<TripChange[]> {
    return (await this.decisions(partition)).filter((decision) => decision.kind !== 'transition')
  }

  private append(partition: number, type: string, data: Uint8Array, isJson: boolean): Promise<unknown> {
    return this.log.append(
      locationStream(partition),
      [{ id: this.ids.next(), type, data, isJson, metadata: {} }],
      'any',
    )
  }
}
