import type { Heard } from '../../devices/point.ts'
import type { Caller, IngestKeyCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { isMendable, type PointTaker, type Rejected } from '../locations/ingest/views.ts'

/** Counts final refusals, to explain why a device is not seen. */
export interface CountsRefused {
  /** Never rejects. */
  note(organizationId: string, trackerId: string, count: number, code: string): Promise<void>
}

export interface DevicePointsOptions {
  store: PointTaker
  refused: CountsRefused
  /** Tracker meant by a caller; undefined if it cannot be determined. */
  trackerIdOf(caller: Caller, name: string | undefined): string | undefined
}

const POINTS_AT_ONCE = 10_000
const SENDERS_AT_ONCE = 16
/** No tracker has this id: points without a name are refused for good, or wait for a name, as those of an unknown one. */
const NOBODY = '00000000-0000-0000-0000-000000000000'
/** First a tracker has to be created, or a limit raised. */
const MEND_AFTER_SECONDS = 60

/**
 * Stores points of devices. Resolves once all acceptable points are durable: points refused for good count as stored,
 * so that one bad point never blocks a client's queue.
 */
export class DevicePoints {
  private readonly options: DevicePointsOptions

  constructor(options: DevicePointsOptions) {
    this.options = options
  }

  /** What several senders said in one request. @throws Failure as `take` */
  async takeAll(caller: Caller, heard: readonly Heard[]): Promise<void> {
    // A tracker's own key determines the tracker: its points stay together, whatever names they come under.
    if (caller.kind !== 'ingestKey') return this.take(caller, { points: heard.flatMap(({ points }) => points) })
    await severalAtOnce(heard, SENDERS_AT_ONCE, (one) => this.take(caller, one))
  }

  /** @throws Failure with status 503 or 429: everything has to be sent again */
  async take(caller: Caller, { points, name }: Heard): Promise<void> {
    if (points.length === 0) return
    const placed = points.filter(({ lat, lng }) => lat !== 0 || lng !== 0)
    const refusals = new Map<string, number>()
    if (placed.length < points.length) refusals.set('invalid', points.length - placed.length)
    await this.store(caller, placed, name, refusals)
  }

  /** Stores points in the API's form for the tracker of that name: 0,0 is allowed. Otherwise like `take`. */
  async takeOwn(caller: IngestKeyCaller, { points, name }: { points: readonly object[]; name: string }): Promise<void> {
    await this.store(caller, points, name, new Map())
  }

  private async store(
    caller: Caller,
    points: readonly object[],
    name: string | undefined,
    refusals: Map<string, number>,
  ): Promise<void> {
    for (let from = 0; from < points.length; from += POINTS_AT_ONCE) {
      const part = points.slice(from, from + POINTS_AT_ONCE)
      // A tracker's own key determines the tracker, whatever name the client sends.
      const sender = name === undefined ? { trackerId: NOBODY } : { externalId: name }
      const named = caller.kind === 'ingestKey' ? part.map((point) => ({ ...point, ...sender })) : part
      const { rejected } = await this.options.store.store(caller, named)
      assertTaken(rejected, caller.kind === 'ingestKey' && name === undefined)
      for (const { code } of rejected) refusals.set(code, (refusals.get(code) ?? 0) + 1)
    }
    if (refusals.size > 0) await this.count(caller, name, refusals)
  }

  private async count(caller: Caller, name: string | undefined, refusals: Map<string, number>): Promise<void> {
    const trackerId = this.options.trackerIdOf(caller, name)
    if (trackerId === undefined) return
    for (const [code, count] of refusals) await this.options.refused.note(caller.organizationId, trackerId, count, code)
  }
}

const unnamed = (): Failure =>
  new Failure('unknown_tracker', {
    message: 'With an ingest key the client has to name its tracker; set its device id, or use the key of a tracker.',
    retryAfterSeconds: MEND_AFTER_SECONDS,
  })

/** @throws Failure for points that may be accepted later, see `isMendable` */
const assertTaken = (rejected: readonly Rejected[], isUnnamed: boolean): void => {
  const code = rejected.find((one) => isMendable(one.code))?.code
  if (code !== undefined && isUnnamed) throw unnamed()
  if (code === 'unknown_tracker' || code === 'tracker_limit' || code === 'forbidden_tracker')
    throw new Failure(code, { retryAfterSeconds: MEND_AFTER_SECONDS })
}
