import { isDeepStrictEqual } from 'node:util'
import { type EventLog, eventsBackwards, eventsOf } from '../../engines/event-log.ts'
import { locationEntry } from '../../features/locations/location-entry.ts'
import { locationStream } from '../../features/locations/events.ts'
import { DECIDED, transitionStream, type Decided, type Decision } from '../../features/transitions/events.ts'
import type { Difference, RebuildReport } from '../../kit/consumers/rebuild-projection.ts'
import type { Services } from '../../kit/services.ts'
import { breathe } from '../../kernel/breath.ts'
import { decodeJson } from '../../kernel/event.ts'
import { FenceBook } from './fence-book.ts'
import { DecisionOutbox } from './decisions.ts'
import { MatcherPartition } from './partition.ts'

/** A decision, with its number among all that an entry of the location stream led to. */
interface Numbered {
  sourceRevision: number
  ordinal: number
  decision: Decision
}

const DIFFERENCES_MAX = 100

/**
 * Decides a partition again, in memory, from its last snapshot (or the beginning) through a revision that its matcher
 * has stored, and compares the result with the stream of transitions. Changes nothing. `rows` are decisions.
 */
export const decideAgain = async (
  services: Pick<Services, 'log' | 'tables' | 'clock'>,
  partition: number,
  through: number,
  signal: AbortSignal,
): Promise<Required<RebuildReport>> => {
  const { log, clock } = services
  const again = new MatcherPartition({ ...services, book: new FenceBook(log) }, partition)
  try {
    const from = (await again.loadSnapshot()) + 1
    const comparison = new Comparison(partition, loggedDecisions(log, partition, again.settledThrough, through))
    const outbox = new DecisionOutbox({
      log: comparison,
      clock,
      partition,
      revision: -1,
      onDecided: () => undefined,
      onFailure: () => undefined,
    })
    again.begin(outbox, { sourceRevision: -1, ordinal: -1 })
    await replay(log, again, partition, from, through, signal)
    await outbox.settled()
    return await comparison.end()
  } finally {
    await again.dispose()
  }
}

const replay = async (
  log: EventLog,
  matcher: MatcherPartition,
  partition: number,
  from: number,
  through: number,
  signal: AbortSignal,
): Promise<void> => {
  for await (const event of eventsOf(log, locationStream(partition), from, through)) {
    signal.throwIfAborted()
    await breathe()
    await matcher.apply(locationEntry(event, partition))
  }
}

/** Replaces the log for an outbox: appends are compared with the logged ones. */
class Comparison implements Pick<EventLog, 'append'> {
  private readonly partition: number
  private readonly logged: AsyncGenerator<Numbered>
  private next: Promise<IteratorResult<Numbered>>
  private readonly report: Required<RebuildReport> = { projection: 'matcher', rows: 0, differing: 0, differences: [] }
  private appended = -1

  constructor(partition: number, logged: AsyncGenerator<Numbered>) {
    this.partition = partition
    this.logged = logged
    this.next = logged.next()
    this.next.catch(() => undefined) // reported where it is awaited
  }

  async append(
    _stream: string,
    events: readonly { data: Uint8Array }[],
  ): Promise<{ revision: number; position: number }> {
    for (const { data } of events) {
      const { sourceRevision, ordinal, decisions } = decodeJson<Decided>(data)
      for (const [i, decision] of decisions.entries())
        await this.take({ sourceRevision, ordinal: ordinal + i, decision })
      this.appended++
    }
    return { revision: this.appended, position: this.appended }
  }

  /** The remaining decisions were logged and are not decided again. */
  async end(): Promise<Required<RebuildReport>> {
    for (let left = await this.next; !left.done; left = await this.logged.next()) this.differs(left.value, undefined)
    return this.report
  }

  private async take(again: Numbered): Promise<void> {
    let logged = await this.next
    while (!logged.done && order(logged.value, again) < 0) {
      this.differs(logged.value, undefined)
      logged = await this.advance()
    }
    if (logged.done || order(logged.value, again) > 0) return this.differs(undefined, again)
    if (isDeepStrictEqual(logged.value.decision, again.decision)) this.report.rows++
    else this.differs(logged.value, again)
    await this.advance()
  }

  private advance(): Promise<IteratorResult<Numbered>> {
    this.next = this.logged.next()
    return this.next
  }

  private differs(live: Numbered | undefined, rebuilt: Numbered | undefined): void {
    const { sourceRevision, ordinal, decision } = (live ?? rebuilt) as Numbered
    const { report } = this
    report.rows++
    if (++report.differing > DIFFERENCES_MAX) return
    const difference: Difference = {
      table: transitionStream(this.partition),
      scope: decision.organizationId,
      id: `${sourceRevision}.${ordinal}`,
    }
    report.differences.push({ ...difference, live: live?.decision, rebuilt: rebuilt?.decision })
  }
}

/** Logged decisions of entries after one revision and up to another. */
async function* loggedDecisions(
  log: Pick<EventLog, 'read'>,
  partition: number,
  after: number,
  through: number,
): AsyncGenerator<Numbered> {
  const stream = transitionStream(partition)
  for await (const event of eventsOf(log, stream, await firstAfter(log, stream, after))) {
    if (event.type !== DECIDED) continue
    const { sourceRevision, ordinal, decisions } = decodeJson<Decided>(event.data)
    if (sourceRevision > through) return
    for (const [i, decision] of decisions.entries()) yield { sourceRevision, ordinal: ordinal + i, decision }
  }
}

/** Revision of the first decision of entries after that one; searched from the end, since streams are long. */
const firstAfter = async (log: Pick<EventLog, 'read'>, stream: string, after: number): Promise<number> => {
  for await (const { type, revision, data } of eventsBackwards(log, stream))
    if (type === DECIDED && decodeJson<Decided>(data).sourceRevision <= after) return revision + 1
  return 0
}

const order = (a: Numbered, b: Numbered): number => a.sourceRevision - b.sourceRevision || a.ordinal - b.ordinal
