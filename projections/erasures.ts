import { type EventLog, eventsOf } from '../src/engines/event-log.ts'
import type { HistoryErasure, HistoryStore } from '../src/engines/history-store.ts'
import { HISTORY_ERASURES } from '../src/features/locations/events.ts'
import type { Clock } from '../src/kernel/clock.ts'
import { decodeJson } from '../src/kernel/event.ts'
import type { Logger } from '../src/kernel/logger.ts'
import { Follower } from '../src/kit/consumers/follower.ts'
import { untilDone } from '../src/kit/consumers/retry.ts'
import type { OwnedPlace } from './history-checkpoints.ts'

const ERASURES_AT_ONCE = 256

type LogReader = Pick<EventLog, 'read'>

/** Erasures of the history, as far as the log was read: inserters leave their rows out. */
export class Erased {
  /** Revision in the stream of erasures through which it has read, -1 for none. */
  through = -1
  private readonly organizations = new Set<string>()
  /** Erased trackers of each organization, and the time up to which they are. */
  private readonly trackers = new Map<string, Map<string, number>>()

  /** Reads the stream to its end. */
  async read(log: LogReader): Promise<this> {
    for await (const { revision, erasure } of erasuresAfter(log, this.through)) this.add(erasure, revision)
    return this
  }

  add({ organizationId, trackerId, through = Number.POSITIVE_INFINITY }: HistoryErasure, revision: number): void {
    if (revision <= this.through) return
    this.through = revision
    if (trackerId === undefined) this.organizations.add(organizationId)
    else {
      const trackers = this.trackers.get(organizationId) ?? new Map<string, number>()
      trackers.set(trackerId, Math.max(through, trackers.get(trackerId) ?? 0))
      this.trackers.set(organizationId, trackers)
    }
  }

  get isEmpty(): boolean {
    return this.through < 0
  }

  /** Whether anything of the organization is erased, or of the one tracker. */
  hasOf(organizationId: string, trackerId?: string): boolean {
    if (this.organizations.has(organizationId)) return true
    const trackers = this.trackers.get(organizationId)
    return trackers !== undefined && (trackerId === undefined || trackers.has(trackerId))
  }

  hasAllOf(organizationId: string): boolean {
    return this.organizations.has(organizationId)
  }

  /** Whether data of the tracker from that time (ms since the epoch) is erased. */
  has(organizationId: string, trackerId: string, at: number): boolean {
    if (this.organizations.has(organizationId)) return true
    return at <= (this.trackers.get(organizationId)?.get(trackerId) ?? Number.NEGATIVE_INFINITY)
  }
}

interface Inserter {
  flush(): Promise<void>
  notErased(through: number): OwnedPlace[]
  storeErased(): Promise<void>
}

/**
 * The erasures of one process: it reads them from the log, so that its consumers no longer insert such rows; then
 * earlier inserts are removed from the history; then each partition's checkpoint records it. A crash in between leaves
 * the checkpoint unchanged, and the partition's next owner does it again.
 */
export class HistoryErasures {
  readonly known = new Erased()
  private readonly services: { log: EventLog; history: Pick<HistoryStore, 'erase'>; clock: Clock; logger: Logger }
  private readonly inserters = new Set<Inserter>()
  private readonly abort = new AbortController()
  private follower: Follower | undefined
  private erasing: Promise<void> | undefined
  /** Inserts that erasing waits for, besides those of `inserters`. */
  private readonly inserts = new Set<Promise<unknown>>()
  private isAsked = false
  /** Revision through which none of this process's inserts is left that is erased, whoever owns the partitions now. */
  private erasedThrough = -1

  constructor(services: { log: EventLog; history: Pick<HistoryStore, 'erase'>; clock: Clock; logger: Logger }) {
    this.services = services
  }

  /** Reads the erasures, and follows the log for more. */
  async start(): Promise<this> {
    this.erasedThrough = (await this.known.read(this.services.log)).through
    this.follower = new Follower(this.services, {
      name: 'history-erasures',
      source: { stream: HISTORY_ERASURES },
      handle: ({ events }) => {
        for (const { data, revision } of events) this.known.add(decodeJson<HistoryErasure>(data), revision)
        if (events.length > 0) this.erase()
        return undefined
      },
    }).startBehind(this.known.through)
    return this
  }

  join(inserter: Inserter): void {
    this.inserters.add(inserter)
  }

  leave(inserter: Inserter): void {
    this.inserters.delete(inserter)
  }

  /** Runs an insert from which all known erased rows are left out in the same turn. */
  async beside(insert: () => Promise<void>): Promise<void> {
    const inserting = insert()
    this.inserts.add(inserting)
    try {
      await inserting
    } finally {
      this.inserts.delete(inserting)
    }
  }

  /** Await it before inserting rows of a partition whose previous owner had erased up to that revision. */
  async knowAt(revision: number): Promise<void> {
    if (this.known.through < revision) await this.known.read(this.services.log)
    if (this.known.through > revision) this.erase()
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.follower?.close()
    await this.erasing
  }

  /** Starts, or continues once more; failures are retried. */
  private erase(): void {
    this.isAsked = true
    this.erasing ??= this.eraseAll().finally(() => (this.erasing = undefined))
  }

  private async eraseAll(): Promise<void> {
    const { clock, logger } = this.services
    const onFailure = (error: unknown): void => logger.error('the history could not erase', { error: String(error) })
    while (this.isAsked && !this.abort.signal.aborted) {
      this.isAsked = false
      await untilDone(() => this.eraseOnce(), { clock, signal: this.abort.signal, onFailure })
    }
  }

  private async eraseOnce(): Promise<void> {
    const { log, history } = this.services
    const { through } = this.known
    const inserters = [...this.inserters]
    const places = inserters.flatMap((inserter) => inserter.notErased(through))
    const from = Math.min(this.erasedThrough, ...places.map(({ erased }) => erased))
    if (from >= through) return
    for (const inserter of inserters) await inserter.flush()
    await Promise.allSettled(this.inserts)
    await eraseAfter(log, history, from)
    this.erasedThrough = through
    for (const place of places) place.erased = through
    for (const inserter of inserters) await inserter.storeErased()
  }
}

/** Erases from the history everything that the log has as erased after that revision. */
export const eraseAfter = async (
  log: LogReader,
  history: Pick<HistoryStore, 'erase'>,
  revision: number,
): Promise<void> => {
  const page: HistoryErasure[] = []
  for await (const { erasure } of erasuresAfter(log, revision)) {
    page.push(erasure)
    if (page.length === ERASURES_AT_ONCE) await history.erase(page.splice(0))
  }
  await history.erase(page)
}

async function* erasuresAfter(
  log: LogReader,
  revision: number,
): AsyncGenerator<{ revision: number; erasure: HistoryErasure }> {
  for await (const event of eventsOf(log, HISTORY_ERASURES, revision + 1))
    yield { revision: event.revision, erasure: decodeJson<HistoryErasure>(event.data) }
}
