import type { EventLog } from '../../engines/event-log.ts'
import { BACKTEST_PAGE, resultStream, type BacktestPage, type BacktestResult } from '../../features/backtests/events.ts'
import type { Transition } from '../../features/transitions/events.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, type EventMetadata } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'

/** Transitions that are sorted in memory; each such run goes to the log by itself. */
const RUN_TRANSITIONS = 20_000
/** Transitions of one result: with the runs' length it bounds how many runs are merged, one page of each in memory. */
const RESULT_TRANSITIONS_MAX = 1_000_000
/** JSON text of one page. */
const PAGE_BYTES = 128 * 1024

/** Consecutive pages of the stream that are sorted. */
interface Run {
  first: number
  last: number
}

export interface ResultBounds {
  runTransitions?: number
  transitionsMax?: number
  pageBytes?: number
}

/**
 * Writes the transitions of one attempt to a stream of its own, oldest first as in the direct answer,
 * without ever holding all: they come by tracker, are sorted in runs, and the runs are merged once all have come. They
 * are kept in the log, and in no table: pages are written once, read in order and dropped at once, and single ones are
 * never queried; as rows each would be stored and indexed a second time. The output of earlier attempts is erased.
 */
export class ResultWriter {
  private readonly log: EventLog
  private readonly stream: string
  private readonly attempt: number
  private readonly seed: string
  private readonly metadata: EventMetadata
  private readonly bounds: Required<ResultBounds>
  /** Revision of the last page, -1 for none. */
  private head = -1
  private pages = 0
  private waiting: Transition[] = []
  private readonly runs: Run[] = []
  private count = 0

  private constructor(
    log: EventLog,
    job: { backtestId: string; organizationId: string; attempt: number },
    bounds: ResultBounds,
  ) {
    this.log = log
    this.stream = resultStream(job.backtestId, job.attempt)
    this.attempt = job.attempt
    this.seed = `${job.backtestId}.${job.attempt}`
    this.metadata = { organizationId: job.organizationId, actor: 'reactor:backtests', $correlationId: job.backtestId }
    this.bounds = {
      runTransitions: RUN_TRANSITIONS,
      transitionsMax: RESULT_TRANSITIONS_MAX,
      pageBytes: PAGE_BYTES,
      ...bounds,
    }
  }

  static async open(
    log: EventLog,
    job: { backtestId: string; organizationId: string; attempt: number },
    bounds: ResultBounds = {},
  ): Promise<ResultWriter> {
    await eraseResults(log, job.backtestId, job.attempt - 1)
    return new ResultWriter(log, job, bounds)
  }

  /** @throws Failure too_large above the maximum of a result, and errors of the log (WrongRevision: another writer). */
  async add(transitions: readonly Transition[]): Promise<void> {
    this.count += transitions.length
    const { transitionsMax, runTransitions } = this.bounds
    if (this.count > transitionsMax)
      throw new Failure('too_large', {
        message: `Over ${transitionsMax} transitions; ask for less time or fewer trackers.`,
      })
    for (const transition of transitions) this.waiting.push(transition)
    if (this.waiting.length >= runTransitions) await this.writeRun()
  }

  async end(): Promise<BacktestResult> {
    if (this.waiting.length > 0) await this.writeRun()
    if (this.runs.length > 1) {
      const merged = await this.writePages(merge(this.runs.map((run) => this.readRun(run))))
      await this.log.truncateBefore(this.stream, merged.first)
      return this.resultOf(merged)
    }
    return this.resultOf(this.runs[0] ?? { first: 0, last: -1 })
  }

  private resultOf(run: Run): BacktestResult {
    return { ...(this.attempt > 1 && { attempt: this.attempt }), ...run, transitions: this.count }
  }

  private async writeRun(): Promise<void> {
    const sorted = this.waiting.sort((a, b) => a.at - b.at)
    this.waiting = []
    this.runs.push(await this.writePages(sorted))
  }

  private async writePages(transitions: Iterable<Transition> | AsyncIterable<Transition>): Promise<Run> {
    let first: number | undefined
    let texts: string[] = []
    let bytes = 0
    for await (const transition of transitions) {
      const text = JSON.stringify(transition)
      const size = Buffer.byteLength(text) + 1
      if (bytes + size > this.bounds.pageBytes && texts.length > 0) {
        const page = await this.append(texts)
        first ??= page
        texts = []
        bytes = 0
      }
      texts.push(text)
      bytes += size
    }
    if (texts.length > 0) {
      const last = await this.append(texts)
      first ??= last
    }
    return { first: first ?? 0, last: this.head }
  }

  /** Answers the revision of the page. */
  private async append(texts: readonly string[]): Promise<number> {
    const data = Buffer.from(
      `{"organizationId":${JSON.stringify(this.metadata.organizationId)},"transitions":[${texts.join()}]}`,
    )
    const page = {
      id: idFrom(BACKTEST_PAGE, this.seed, this.pages++),
      type: BACKTEST_PAGE,
      data,
      isJson: true,
      metadata: this.metadata,
    }
    const { revision } = await this.log.append(this.stream, [page], this.head < 0 ? 'none' : this.head)
    this.head = revision
    return revision
  }

  private async *readRun({ first, last }: Run): AsyncGenerator<Transition[]> {
    for (let revision = first; revision <= last; revision++) {
      const [page] = await this.log.read(this.stream, revision, 1)
      if (page?.revision !== revision) throw new Error(`page ${revision} of ${this.stream} is gone`)
      yield decodeJson<BacktestPage>(page.data).transitions as Transition[]
    }
  }
}

/** Erases the output of all attempts up to this one. */
export const eraseResults = async (log: EventLog, backtestId: string, attempt: number): Promise<void> => {
  for (let each = 1; each <= attempt; each++) await log.erase(resultStream(backtestId, each))
}

/** Merges several sorted sequences; of equal times those of the earlier run come first, as in a stable sort of all. */
async function* merge(runs: readonly AsyncGenerator<Transition[]>[]): AsyncGenerator<Transition> {
  const heads = await Promise.all(runs.map(async (pages) => ({ pages, page: (await pages.next()).value ?? [], at: 0 })))
  for (;;) {
    let least: (typeof heads)[number] | undefined
    for (const head of heads)
      if (head.at < head.page.length && (least === undefined || head.page[head.at].at < least.page[least.at].at))
        least = head
    if (least === undefined) return
    yield least.page[least.at++]
    if (least.at < least.page.length) continue
    least.page = (await least.pages.next()).value ?? []
    least.at = 0
  }
}
