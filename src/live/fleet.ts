import { AHEAD, type PointBatch } from '../features/locations/events.ts'
import {
  HAS_POINT,
  hasPoint,
  isNewer,
  keepLatest,
  keepPoint,
  latestKept,
  type LatestPoint,
  latOf,
  lngOf,
  P_STATE,
  POINT_INTS,
  positionText,
  seenAtKept,
  seesUserOf,
} from '../features/locations/views.ts'
import { statusAt, type StatusAges, type TrackerStatus } from '../features/trackers/status.ts'
import type { TrackerFacts } from '../features/trackers/views.ts'
import { type Box, boxContains } from '../geo/box.ts'
import type { UserCaller } from '../kernel/caller.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { type Piece, Records } from '../kernel/records.ts'
import { Slots } from '../kernel/slots.ts'
import { cellAt, Cells } from './cells.ts'
import { type Sight, Sights } from './sights.ts'

/** Whole numbers of a record, after the point: the place when subscriptions were last informed. */
const TOLD_LAT = POINT_INTS
const TOLD_LNG = POINT_INTS + 1
/** Number of subscriptions that are owed the position. */
const OWED = POINT_INTS + 2
/** An even number. */
const RECORD_INTS = POINT_INTS + 3
/** Bits of the state beside `HAS_POINT`: subscriptions were informed of a place. */
const HAS_TOLD = HAS_POINT << 1
/** It is among the changed ones. */
const CHANGED = HAS_POINT << 2
/** Its texts, if they are still kept, are those of the present point and facts. */
const HAS_TEXTS = HAS_POINT << 3
/** The tracker was deleted: points of it may still be on their way, and nobody sees them. */
const IS_GONE = HAS_POINT << 4

/** Deleted trackers whose facts are kept: events of them are still to come. */
const GONE_KEPT = 1_000

/** JSON of a position, each made on first use after a change. */
interface Texts {
  status: TrackerStatus
  text: string | undefined
  /** For callers that may see the tracker's user. */
  userText: string | undefined
}

/** Texts of snapshots that are kept at least, so that many who look at the same part of a fleet share them. */
const TEXTS_LEAST = 20_000

/**
 * The last positions of one organization's trackers, each at a slot: a small number that stays the tracker's. All of a
 * position is in its record; objects and texts are made of those that are sent.
 */
export class Fleet {
  private readonly slots = new Slots()
  private readonly records = new Records(RECORD_INTS)
  private readonly names: (string | undefined)[] = []
  /** Undefined: nothing is known but points. */
  private readonly sights: (Sight | undefined)[] = []
  private readonly shared = new Sights()
  private readonly texts = new RecentMap<number, Texts>(TEXTS_LEAST)
  /** Those of units that others are still owed, and no longer: what lives for a moment costs a collection nothing. */
  private readonly owedTexts = new Map<number, Texts>()
  /** Slots of deleted trackers, and of some that are back. */
  private readonly gone: number[] = []
  private readonly isShown: (slot: number) => boolean
  private readonly cells = new Cells()
  private changed: number[] = []
  private readonly ages: StatusAges

  /** `isShown`: whether a subscription has yet to hear that the unit is gone. */
  constructor(ages: StatusAges, isShown: (slot: number) => boolean) {
    this.ages = ages
    this.isShown = isShown
  }

  get size(): number {
    return this.slots.size
  }

  slotOf(trackerId: string): number {
    const known = this.slots.get(trackerId)
    if (known !== undefined) return known
    if (this.gone.length > GONE_KEPT) this.releaseGone()
    return this.slots.of(trackerId)
  }

  /** Lets go of the first deleted tracker; its slot is another's then. */
  private releaseGone(): void {
    const slot = this.gone.shift() as number
    const { ints } = this.records.piece(slot)
    const at = this.records.at(slot)
    if ((ints[at + P_STATE] & IS_GONE) === 0) return
    if ((ints[at + P_STATE] & CHANGED) !== 0 || ints[at + OWED] > 0 || this.isShown(slot)) {
      this.gone.push(slot)
      return
    }
    this.records.clear(slot)
    this.names[slot] = this.sights[slot] = undefined
    this.slots.release(slot)
  }

  idOf(slot: number): string {
    return this.slots.idOf(slot)
  }

  /** Slots that may be in the viewport; undefined: look at every slot. */
  slotsWithin(viewport: Box): number[] | undefined {
    return this.cells.within(viewport)
  }

  /** Slots of the known ones of these trackers. */
  slotsOf(trackerIds: Iterable<string>): number[] {
    return [...trackerIds].flatMap((trackerId) => this.slots.get(trackerId) ?? [])
  }

  /** Undefined for an unknown tracker. */
  sightOf(trackerId: string): Sight | undefined {
    const slot = this.slots.get(trackerId)
    return slot === undefined ? undefined : this.sights[slot]
  }

  sightAt(slot: number): Sight | undefined {
    return this.sights[slot]
  }

  /** A copy of the point; undefined for a tracker never seen, or forgotten since. */
  pointAt(slot: number): LatestPoint | undefined {
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    return hasPoint(piece, at) ? latestKept(piece, at, this.slots.idOf(slot)) : undefined
  }

  /** Whether the tracker is anywhere within the viewport; without one, whether it is anywhere at all. */
  isWithin(slot: number, viewport: Box | undefined): boolean {
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if (!isThere(piece, at)) return false
    return viewport === undefined || boxContains(viewport, lngOf(piece, at), latOf(piece, at))
  }

  /** Takes a point unless a newer one is known. */
  move(point: LatestPoint): void {
    const slot = this.slotOf(point.trackerId)
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if (!isNewer(piece, at, point.recordedAt)) return
    keepLatest(piece, at, point)
    this.moved(slot, piece, at)
  }

  /** Takes the newest point of one tracker of a batch, whose points stand from `from` to before `to`. */
  take(batch: PointBatch, from: number, to: number): void {
    let i = to - 1
    while (i >= from && (batch.flags[i] & AHEAD) !== 0) i--
    if (i < from) return
    const slot = this.slotOf(batch.trackers[batch.tracker[i]].trackerId)
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if (!isNewer(piece, at, batch.recordedAt[i])) return
    keepPoint(piece, at, batch, i)
    this.moved(slot, piece, at)
  }

  /** For facts that may be older than what is known, or than the deletion of the tracker. */
  knowUnlessKnown(trackerId: string, facts: TrackerFacts): void {
    const slot = this.slotOf(trackerId)
    const isGone = (this.records.piece(slot).ints[this.records.at(slot) + P_STATE] & IS_GONE) !== 0
    if (this.sights[slot] === undefined && !isGone) this.know(trackerId, facts)
  }

  know(trackerId: string, facts: TrackerFacts): void {
    const slot = this.slotOf(trackerId)
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    this.names[slot] = facts.name
    this.sights[slot] = this.shared.of(facts)
    piece.ints[at + P_STATE] &= ~IS_GONE
    this.moved(slot, piece, at)
  }

  /** The tracker is deleted: until it is known again nobody sees where it is. Its facts stay for events that are still to come. */
  remove(trackerId: string): void {
    const slot = this.slotOf(trackerId)
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if ((piece.ints[at + P_STATE] & IS_GONE) === 0) this.gone.push(slot)
    piece.ints[at + P_STATE] |= IS_GONE
    this.moved(slot, piece, at)
  }

  /** Forgets where the tracker was. */
  forget(trackerId: string): void {
    const slot = this.slots.get(trackerId)
    if (slot === undefined) return
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    piece.ints[at + P_STATE] &= ~HAS_POINT
    this.moved(slot, piece, at)
  }

  /** Calls `visit` for each unit that changed since the last call, with the place told then and the present one (NaN: none). */
  tellChanged(visit: (slot: number, fromLat: number, fromLng: number, toLat: number, toLng: number) => void): void {
    const { changed } = this
    this.changed = []
    for (const slot of changed) {
      const piece = this.records.piece(slot)
      const at = this.records.at(slot)
      const { ints } = piece
      const state = ints[at + P_STATE]
      const wasTold = (state & HAS_TOLD) !== 0
      const fromLat = wasTold ? ints[at + TOLD_LAT] : Number.NaN
      const fromLng = wasTold ? ints[at + TOLD_LNG] : Number.NaN
      const isHere = isThere(piece, at)
      ints[at + P_STATE] = (state & ~(HAS_TOLD | CHANGED)) | (isHere ? HAS_TOLD : 0)
      ints[at + TOLD_LAT] = latOf(piece, at)
      ints[at + TOLD_LNG] = lngOf(piece, at)
      visit(slot, fromLat, fromLng, isHere ? latOf(piece, at) : Number.NaN, isHere ? lngOf(piece, at) : Number.NaN)
    }
  }

  /** One more subscription is owed the position. */
  owe(slot: number): void {
    this.records.piece(slot).ints[this.records.at(slot) + OWED]++
  }

  /** One of those that were owed the position is no longer. */
  pay(slot: number): void {
    const { ints } = this.records.piece(slot)
    const at = this.records.at(slot)
    if (--ints[at + OWED] === 0 && this.owedTexts.delete(slot)) ints[at + P_STATE] &= ~HAS_TEXTS
  }

  /** The position as JSON text, as this caller may see it. The unit must have a point. */
  text(slot: number, now: number, caller: UserCaller): string {
    const piece = this.records.piece(slot)
    const texts = this.textsOf(slot, piece, statusAt(seenAtKept(piece, this.records.at(slot)), now, this.ages))
    const { userId, vehicleId, userHubIds } = this.sights[slot] ?? NO_SIGHT
    if (userId !== undefined && seesUserOf(caller, { userId, userHubIds }))
      return (texts.userText ??= this.newText(slot, { userId, vehicleId }, texts.status))
    return (texts.text ??= this.newText(slot, { vehicleId }, texts.status))
  }

  private textsOf(slot: number, { ints }: Piece, status: TrackerStatus): Texts {
    const at = this.records.at(slot)
    const hasTexts = (ints[at + P_STATE] & HAS_TEXTS) !== 0
    const kept = hasTexts ? (this.owedTexts.get(slot) ?? this.texts.get(slot)) : undefined
    if (kept !== undefined && kept.status === status) return kept
    const texts: Texts = { status, text: undefined, userText: undefined }
    if (ints[at + OWED] > 0) this.owedTexts.set(slot, texts)
    else this.texts.set(slot, texts)
    ints[at + P_STATE] |= HAS_TEXTS
    return texts
  }

  private newText(slot: number, shown: { userId?: string; vehicleId?: string }, status: TrackerStatus): string {
    const { userId, vehicleId } = shown
    return flat(
      positionText(this.pointAt(slot) as LatestPoint, { name: this.names[slot] ?? '', userId, vehicleId }, status),
    )
  }

  private moved(slot: number, piece: Piece, at: number): void {
    this.cells.move(slot, isThere(piece, at) ? cellAt(latOf(piece, at), lngOf(piece, at)) : Number.NaN)
    this.touch(slot, piece, at)
  }

  private touch(slot: number, { ints }: Piece, at: number): void {
    const state = ints[at + P_STATE]
    ints[at + P_STATE] = (state & ~HAS_TEXTS) | CHANGED
    if ((state & CHANGED) === 0) this.changed.push(slot)
  }
}

/** Whether the tracker is to be seen anywhere. */
const isThere = (piece: Piece, at: number): boolean => hasPoint(piece, at) && (piece.ints[at + P_STATE] & IS_GONE) === 0

const NO_SIGHT: Sight = { hubIds: [] }

/** A concatenated text is a tree until its characters are read: joining flat ones takes a fifth of the time. */
const flat = (text: string): string => {
  text.charCodeAt(0)
  return text
}
