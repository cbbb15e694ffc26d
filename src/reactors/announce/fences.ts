import type { TableStore } from '../../engines/table-store.ts'
import {
  GEOFENCE_PREFIX,
  GROUP_CHANGED,
  GROUP_CREATED,
  GROUP_DELETED,
  GROUP_PREFIX,
} from '../../features/geofences/events.ts'
import {
  FENCES_CHANGED,
  type FencesChanged,
  locationStream,
  type MatchingSettings,
} from '../../features/locations/events.ts'
import { breathe } from '../../kernel/breath.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import { ReachedPosition } from '../../kit/consumers/reached-position.ts'
import type { Services } from '../../kit/services.ts'
import { untilDone } from '../../kit/consumers/until-done.ts'
import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'
import { MATCHER_STATE } from '../matcher/store.ts'

const CONSUMER = 'announce-fences'
const SETTINGS_ROW = 'announced-settings'
const RETRY_MS = [100, 500, 2_000, 5_000]
const POLL_MS = 50
/** A geofence may have 0.6 MB: so many are held at once. */
const BATCH_EVENTS = 512
const GROUP_TYPES: readonly string[] = [GROUP_CREATED, GROUP_CHANGED, GROUP_DELETED]

/**
 * Says in every partition from where on an edit of geofences or groups counts. Follows their streams; edits that came
 * together go into one event for each organization and moment. After a crash it may repeat itself: whoever reads an
 * announcement knows by its `sourcePosition` whether it is old.
 */
export class FenceAnnouncer {
  private readonly services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>
  private readonly onFailure: (error: unknown) => void
  private readonly abort = new AbortController()
  private running: Promise<void> | undefined
  private readonly through: ReachedPosition
  private checkpoint: OwnedCheckpoint | undefined

  constructor(
    services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>,
    onFailure: (error: unknown) => void,
  ) {
    this.services = services
    this.onFailure = onFailure
    this.through = new ReachedPosition(services.clock)
  }

  /** Announces settings that differ from what was announced last, then follows edits until `close`. */
  async start(settings: MatchingSettings): Promise<void> {
    const { tables } = this.services
    await tables.declare(MATCHER_STATE)
    await this.announceSettings(settings)
    this.checkpoint = await OwnedCheckpoint.take(tables, CONSUMER)
    this.through.moveTo(this.checkpoint.at?.all ?? -1)
    this.running = this.untilDone(() => this.follow())
  }

  /** Whether everything up to that position of the log counts in every partition; false when it does not after `timeoutMs`. */
  waitFencesInForce(position: number, timeoutMs: number): Promise<boolean> {
    if (this.running === undefined) return waitAnnounced(this.services, position, timeoutMs)
    return this.through.wait(position, timeoutMs)
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.running
    this.running = undefined
  }

  private async follow(): Promise<void> {
    const { log } = this.services
    const from = this.through.at < 0 ? undefined : this.through.at
    for await (const batch of log.follow(
      { prefixes: [GEOFENCE_PREFIX, GROUP_PREFIX] },
      from,
      this.abort.signal,
      BATCH_EVENTS,
    )) {
      const changes = await changesOf(batch.events)
      if (changes.length > 0) await this.untilDone(() => this.append(changes))
      if (this.abort.signal.aborted) return
      this.through.moveTo(batch.checkpoint)
      if (changes.length > 0 && !(await this.store(batch.checkpoint))) return
    }
  }

  private async append(changes: readonly FencesChanged[]): Promise<void> {
    const { log, partitions } = this.services
    const encoded = changes.map(encodeJson)
    const eventsOf = (partition: number): NewEvent[] =>
      changes.map((change, i) => eventOf(partition, change, encoded[i]))
    await Promise.all(
      Array.from({ length: partitions }, (_, partition) =>
        log.append(locationStream(partition), eventsOf(partition), 'any'),
      ),
    )
  }

  private async announceSettings(settings: MatchingSettings): Promise<void> {
    const { tables, clock } = this.services
    const told = await tables.get<MatchingSettings & { [field: string]: unknown }>(
      MATCHER_STATE.name,
      CONSUMER,
      SETTINGS_ROW,
    )
    if (
      told !== undefined &&
      told.tripStopMs === settings.tripStopMs &&
      told.tripGapMs === settings.tripGapMs &&
      String(told.rollout) === String(settings.rollout)
    )
      return
    const change = { organizationId: '*', at: clock.now(), sourcePosition: -1, geofences: [], groups: [], settings }
    await this.append([change])
    await tables.commit([{ table: MATCHER_STATE.name, scope: CONSUMER, id: SETTINGS_ROW, row: { ...settings } }])
  }

  /** False when another process has taken over. */
  private async store(all: number): Promise<boolean> {
    let isOurs = true
    await this.untilDone(async () => void (isOurs = (await this.checkpoint?.move({ all })) !== false))
    return isOurs
  }

  private untilDone(run: () => Promise<void>): Promise<void> {
    return untilDone(run, {
      clock: this.services.clock,
      signal: this.abort.signal,
      retryMs: RETRY_MS,
      onFailure: this.onFailure,
    })
  }
}

/** As `FenceAnnouncer.waitFencesInForce`, for a process in which no announcer runs: asks for its checkpoint. */
export const waitAnnounced = async (
  { tables, clock }: { tables: Pick<TableStore, 'checkpoint'>; clock: Services['clock'] },
  position: number,
  timeoutMs: number,
): Promise<boolean> => {
  const until = clock.monotonic() + timeoutMs
  for (;;) {
    if (((await tables.checkpoint(CONSUMER))?.all ?? -1) >= position) return true
    if (clock.monotonic() >= until) return false
    await new Promise<void>((resume) => clock.after(POLL_MS, resume))
  }
}

/** One change for each run of edits of one organization at one moment (those of an import are). */
const changesOf = async (events: readonly RecordedEvent[]): Promise<FencesChanged[]> => {
  const changes: FencesChanged[] = []
  /** What the last change names, by stream: of several edits of one thing the last counts. */
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

const eventOf = (partition: number, change: FencesChanged, data: Uint8Array): NewEvent => ({
  id:
    change.settings === undefined
      ? idFrom(CONSUMER, partition, change.organizationId, change.sourcePosition)
      : idFrom(CONSUMER, partition, 'settings', change.at),
  type: FENCES_CHANGED,
  data,
  isJson: true,
  metadata: { organizationId: change.organizationId, actor: `reactor:${CONSUMER}` },
})
