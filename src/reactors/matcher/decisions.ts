import type { Appended, EventLog } from '../../engines/event-log.ts'
import {
  DECIDED,
  type Decided,
  type Decision,
  type PointValue,
  type Transition,
  transitionStream,
} from '../../features/transitions/events.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { encodeJson, type NewEvent } from '../../kernel/event.ts'
import type { TripDraft } from './detect-trips.ts'
import type { Fences } from './fences.ts'

/** A transition before it is numbered among the decisions of its source event. */
export interface TransitionDraft {
  type: 'entry' | 'leave'
  geofenceId: string
  geofenceGroupId: string
  at: number
  cause: Transition['cause']
  point: PointValue
}

/** Collects the decisions that one source event leads to, in order, and numbers them. */
export class Decisions {
  readonly list: Decision[] = []
  /** What one point led to, until `addTransitions` takes it. */
  readonly drafts: TransitionDraft[] = []
  readonly tripDrafts: TripDraft[] = []
  private readonly sourceRevision: number

  constructor(sourceRevision: number) {
    this.sourceRevision = sourceRevision
  }

  addTransitions(organizationId: string, trackerId: string, drafts: readonly TransitionDraft[]): void {
    for (const { type, geofenceId, geofenceGroupId, at, cause, point } of drafts) {
      const _id = idFrom(organizationId, geofenceId, trackerId, this.sourceRevision, this.list.length)
      this.list.push({
        kind: 'transition',
        _id,
        organizationId,
        trackerId,
        geofenceId,
        geofenceGroupId,
        type,
        at,
        cause,
        point,
      })
    }
  }

  addTrips(organizationId: string, trackerId: string, drafts: readonly TripDraft[]): void {
    for (const draft of drafts) this.list.push({ organizationId, trackerId, ...draft })
  }
}

export const draftOf = (
  fences: Fences,
  number: number,
  type: 'entry' | 'leave',
  atMs: number,
  cause: Transition['cause'],
  point: PointValue,
): TransitionDraft => {
  const geofenceGroupId = fences.fence(number)?.geofenceGroupId ?? ''
  return { type, geofenceId: fences.numbers.idOf(number), geofenceGroupId, at: atMs, cause, point }
}

/** Leaves before entries, then by geofence, so that every replay has the same order. */
export const inOrder = (a: TransitionDraft, b: TransitionDraft): number =>
  a.type !== b.type ? (a.type === 'leave' ? -1 : 1) : a.geofenceId < b.geofenceId ? -1 : 1

/** Called with each event that was just appended to `transitions-<partition>`. `position` is that of the whole append: no other event is between. */
export type OnDecided = (partition: number, revision: number, position: number, decided: Decided) => void

export interface OutboxOptions {
  log: Pick<EventLog, 'append'>
  clock: Clock
  partition: number
  /** Last revision of the stream, -1 for none. */
  revision: number
  onDecided: OnDecided
  onFailure: (error: unknown) => void
}

/** Bytes of one append, and of all events that wait; beyond the latter the matcher waits. */
const APPEND_BYTES = 256 * 1024
const WAITING_BYTES_MAX = 4 * 1024 * 1024
/** Decisions of one event: at most some 200 KiB, with attributes of 1 KiB each. */
const DECISIONS_PER_EVENT = 128
const RETRY_MS = [100, 500, 2_000, 5_000]

/**
 * Appends decisions in order, one append in flight at a time. What is decided meanwhile goes with the next append, so the
 * log's latency does not limit the matcher. An append is retried until it succeeds or the stream has another owner.
 */
export class DecisionOutbox {
  private readonly options: OutboxOptions
  private readonly waiting: { event: NewEvent; decided: Decided }[] = []
  private waitingBytes = 0
  private revision: number
  private appending: Promise<void> | undefined
  isClosed = false
  /** Why nothing more can be appended. */
  failure: unknown

  constructor(options: OutboxOptions) {
    this.options = options
    this.revision = options.revision
  }

  /** Queues what one source event led to, from decision number `ordinal` on. */
  push(sourceRevision: number, ordinal: number, sourceLoggedAt: number, decisions: readonly Decision[]): void {
    for (let from = 0; from < decisions.length; from += DECISIONS_PER_EVENT) {
      const part = decisions.slice(from, from + DECISIONS_PER_EVENT)
      this.pushPart({ sourceRevision, ordinal: ordinal + from, sourceLoggedAt, decisions: part })
    }
  }

  /** The first source event whose decisions are not in the log yet; undefined where all are. */
  get firstWaiting(): number | undefined {
    return this.waiting[0]?.decided.sourceRevision
  }

  /** So much waits that the matcher should pause. */
  get isFull(): boolean {
    return this.waitingBytes > WAITING_BYTES_MAX
  }

  /** Resolves when all that was pushed is in the log; rejects with why it cannot be appended. */
  async settled(): Promise<void> {
    while (this.appending !== undefined) await this.appending
    if (this.failure !== undefined) throw this.failure
  }

  /** Resolves when there is room again; rejects as `settled`. */
  async room(): Promise<void> {
    while (this.isFull && this.appending !== undefined) await this.appending
    if (this.failure !== undefined) throw this.failure
  }

  /** Appends nothing more after what is in flight. */
  close(): void {
    this.isClosed = true
  }

  private pushPart(decided: Decided): void {
    const { partition } = this.options
    const id = idFrom('decided', partition, decided.sourceRevision, decided.ordinal)
    const event = {
      id,
      type: DECIDED,
      data: encodeJson(decided),
      isJson: true,
      metadata: { actor: 'reactor:match-geofences' },
    }
    this.waiting.push({ event, decided })
    this.waitingBytes += event.data.byteLength
    this.appending ??= this.pump()
  }

  private async pump(): Promise<void> {
    // What is decided in the same turn of the event loop goes together.
    await new Promise<void>((resume) => queueMicrotask(resume))
    try {
      while (this.waiting.length > 0 && !this.isClosed && this.failure === undefined) await this.appendSome()
    } finally {
      this.appending = undefined
    }
  }

  private async appendSome(): Promise<void> {
    let count = 0
    let bytes = 0
    while (
      count < this.waiting.length &&
      (count === 0 || bytes + this.waiting[count].event.data.byteLength <= APPEND_BYTES)
    ) {
      bytes += this.waiting[count++].event.data.byteLength
    }
    const batch = this.waiting.slice(0, count)
    const appended = await this.appendBatch(batch.map(({ event }) => event))
    if (appended === undefined) return
    this.waiting.splice(0, count)
    this.waitingBytes -= bytes
    for (const { decided } of batch)
      this.options.onDecided(this.options.partition, ++this.revision, appended.position, decided)
  }

  private async appendBatch(events: NewEvent[]): Promise<Appended | undefined> {
    const { log, clock, partition, onFailure } = this.options
    for (let failures = 0; !this.isClosed; failures++) {
      try {
        return await log.append(transitionStream(partition), events, this.revision < 0 ? 'none' : this.revision)
      } catch (error) {
        const isLasting = !(error instanceof Failure) || error.code !== 'engine_down'
        if (isLasting) {
          this.failure = error
          return undefined
        }
        onFailure(error)
        await new Promise<void>((resume) => clock.after(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], resume))
      }
    }
    return undefined
  }
}
