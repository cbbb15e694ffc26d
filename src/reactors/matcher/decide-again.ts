import { isDeepStrictEqual } from 'node:util'
import { type EventLog, eventsBackwards, eventsOf } from '../../engines/event-log.ts'
import { locationEntry } from '../../features/locations/location-entry.ts'
import { locationStream } from '../../features/locations/events.ts'
import { DECIDED, transitionStream, type Decided, type Decision } from '../../features/transitions/events.ts'
import type { Difference, RebuildReport } from '../../kit/consumers/rebuild-projection.ts'
import { breathe } from '../../kernel/breath.ts'
import { decodeJson } from '../../kernel/event.ts'
import { DecisionOutbox } from './decisions.ts'
import { MatcherPartition, type PartitionServices } from './partition.ts'

/** A decision, with its number among all that an entry of the location stream led to. */
interface Numbered {
  sourceRevision: number
  ordinal: number
  decision: Decision
}

interface LoggedEvent {
  data: Uint8Array
  decided: Decided
}

const DIFFERENCES_MAX = 100

/**
 * Decides a partition again, in memory, from its last snapshot (or the beginning) through a revision that its matcher
 * has stored, and compares the result with the stream of transitions. Changes nothing. `rows` are decisions. Partitions
 * that are decided beside each other share the fences of their book.
 */
export const decideAgain = async (
  services: PartitionServices,
  partition: number,
  through: number,
  signal: AbortSignal,
): Promise<Required<RebuildReport>> => {
  const { log, clock } = services
  const again = new MatcherPartition(services, partition)
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
  private readonly logged: AsyncGenerator<LoggedEvent>
  private next: Promise<IteratorResult<LoggedEvent, void>>
  /** Number of decisions of the next logged event that are compared already. */
  private compared = 0
  private readonly report: Required<RebuildReport> = { projection: 'matcher', rows: 0, differing: 0, differences: [] }
  private appended = -1

  constructor(partition: number, logged: AsyncGenerator<LoggedEvent>) {
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
      if (!(await this.takeSame(data))) for (const one of numbered(decodeJson<Decided>(data))) await this.take(one)
      this.appended++
    }
    return { revision: this.appended, position: this.appended }
  }

  /** The remaining decisions were logged and are not decided again. */
  async end(): Promise<Required<RebuildReport>> {
    for (let left = await this.first(); left !== undefined; left = await this.first()) {
      this.differs(left, undefined)
      this.compared++
    }
    return this.report
  }

  /** Nearly every event is logged in the same bytes: then its decisions need not be looked at. */
  private async takeSame(data: Uint8Array): Promise<boolean> {
    const logged = await this.next
    if (logged.done || this.compared > 0 || Buffer.compare(logged.value.data, data) !== 0) return false
    this.report.rows += logged.value.decided.decisions.length
    this.advance()
    return true
  }

  private async take(again: Numbered): Promise<void> {
    let logged = await this.first()
    for (; logged !== undefined && order(logged, again) < 0; logged = await this.first()) {
      this.differs(logged, undefined)
      this.compared++
    }
    if (logged === undefined || order(logged, again) > 0) return this.differs(undefined, again)
    if (isDeepStrictEqual(logged.decision, again.decision)) this.report.rows++
    else this.differs(logged, again)
    this.compared++
  }

  /** The first logged decision that is not compared yet. */
  private async first(): Promise<Numbered | undefined> {
    for (;;) {
      const { value } = await this.next
      if (value === undefined) return undefined
      if (this.compared < value.decided.decisions.length) return numbered(value.decided)[this.compared]
      this.advance()
    }
  }

  private advance(): void {
    this.compared = 0
    this.next = this.logged.next()
    this.next.catch(() => undefined) // reported where it is awaited
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
): AsyncGenerator<LoggedEvent, void> {
  const stream = transitionStream(partition)
  for await (const { type, data } of eventsOf(log, stream, await firstAfter(log, stream, after))) {
    if (type !== DECIDED) continue
    const decided = decodeJson<Decided>(data)
    if (decided.sourceRevision > through) return
    yield { data, decided }
  }
}

const numbered = ({ sourceRevision, ordinal, decisions }: Decided): Numbered[] =>
  decisions.map((decision, i) => ({ sourceRevision, ordinal: ordinal + i, decision }))

/** Revision of the first decision of entries after that one; searched from the end, since streams are long. */
const firstAfter = async (log: Pick<EventLog, 'read'>, stream: string, after: number): Promise<number> => {
  if (after < 0) return 0
  for await (const { type, revision, data } of eventsBackwards(log, stream))
    if (type === DECIDED && decodeJson<Decided>(data).sourceRevision <= after) return revision + 1
  return 0
}

const order = (a: Numbered, b: Numbered): number => a.sourceRevision - b.sourceRevision || a.ordinal - b.ordinal
