import {
  DECIDED,
  type Decided,
  type Decision,
  type PointValue,
  type Transition,
  transitionStream,
} from '../../features/transitions/events.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { OwnedStream, type OwnedStreamOptions } from '../../kit/consumers/owned-stream.ts'
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

/** Collects the decisions of one source event, in order, and numbers them. */
export class Decisions {
  readonly list: Decision[] = []
  /** Drafts of one point, until `addTransitions` takes them. */
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

/** Called with each event just appended to `transitions-<partition>`; `position`: the append's, no event between. */
export type OnDecided = (partition: number, revision: number, position: number, decided: Decided) => void

export interface OutboxOptions extends Pick<OwnedStreamOptions<Waiting>, 'log' | 'clock' | 'revision' | 'onFailure'> {
  partition: number
  onDecided: OnDecided
}

interface Waiting {
  event: NewEvent
  decided: Decided
}

/** Bytes of one append, and of all events that wait; beyond the latter the matcher waits. */
const APPEND_BYTES = 256 * 1024
const WAITING_BYTES_MAX = 4 * 1024 * 1024
/** Decisions of one event: at most some 200 KiB, with attributes of 1 KiB each. */
const DECISIONS_PER_EVENT = 128

/** Appends decisions in order. Decisions made while an append is in flight go with the next. */
export class DecisionOutbox extends OwnedStream<Waiting> {
  private readonly partition: number

  constructor({ partition, onDecided, ...options }: OutboxOptions) {
    super({
      ...options,
      stream: transitionStream(partition),
      bytesMax: APPEND_BYTES,
      eventsOf: (entries) => entries.map(({ event }) => event),
      onAppended: (entries, firstRevision, { position }) => {
        for (const [i, { decided }] of entries.entries()) onDecided(partition, firstRevision + i, position, decided)
      },
    })
    this.partition = partition
  }

  /** Queues the decisions of one source event, from decision number `ordinal` on. */
  add(sourceRevision: number, ordinal: number, sourceLoggedAt: number, decisions: readonly Decision[]): void {
    for (let from = 0; from < decisions.length; from += DECISIONS_PER_EVENT) {
      const part = decisions.slice(from, from + DECISIONS_PER_EVENT)
      this.addPart({ sourceRevision, ordinal: ordinal + from, sourceLoggedAt, decisions: part })
    }
  }

  /** The first source event whose decisions are not in the log yet; undefined where all are. */
  get firstWaiting(): number | undefined {
    return this.first?.decided.sourceRevision
  }

  /** So many bytes wait that the matcher should pause, until `emptied`. */
  get isFull(): boolean {
    return this.bytes > WAITING_BYTES_MAX
  }

  /** Resolves when there is room again; rejects as `settled`. */
  emptied(): Promise<void> {
    return this.room(WAITING_BYTES_MAX)
  }

  private addPart(decided: Decided): void {
    const event = {
      id: idFrom('decided', this.partition, decided.sourceRevision, decided.ordinal),
      type: DECIDED,
      data: encodeJson(decided),
      isJson: true,
      metadata: { actor: 'reactor:match-geofences' },
    }
    this.push({ event, decided }, event.data.byteLength)
  }
}
