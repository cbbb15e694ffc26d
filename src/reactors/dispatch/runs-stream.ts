import { WrongRevision, type EventLog } from '../../engines/event-log.ts'
import { ATTEMPTS_MADE, RUNS_TAKEN, runsStream, type AttemptMade } from '../../features/automations/events.ts'
import type { Clock } from '../../kernel/clock.ts'
import { encodeJson, type Fact, type NewEvent } from '../../kernel/event.ts'
import { idSource } from '../../kit/commands/ids.ts'

/** Another process owns the partition, or this one has let it go. */
export class PartitionLost extends Error {
  constructor(partition: number) {
    super(`automation-runs-${partition} has another owner`)
    this.name = 'PartitionLost'
  }
}

export interface RunsStreamOptions {
  log: EventLog
  clock: Clock
  partition: number
  /** Told of each event as soon as it is durable, in order. */
  onAppended: (fact: Fact, revision: number) => void
  onFailure: (error: unknown) => void
}

interface Waiting {
  fact: Fact
  bytes: number
  resolve: () => void
  reject: (error: unknown) => void
}

const BATCH_BYTES_MAX = 512 * 1024
const BATCH_FACTS_MAX = 1_000
/** Ids, measures, an error of 200 characters, and 1 KiB of answer (3 KiB as UTF-8 replacement characters), encrypted in base64. */
const ATTEMPT_BYTES = 5 * 1024
const RETRY_MS = [100, 500, 2_000, 5_000]

/**
 * The one writer of `automation-runs-<partition>`. One append is in flight; what comes meanwhile goes with the next one,
 * attempts together in one event. An engine that is down is tried again until it answers; the bound on what waits here
 * is the callers': each of them waits for its append.
 */
export class RunsStream {
  private readonly options: RunsStreamOptions
  private revision = -1
  private waiting: Waiting[] = []
  private writing = false
  private lost = false
  private cancelRetry: (() => void) | undefined

  private constructor(options: RunsStreamOptions) {
    this.options = options
  }

  /** Takes the partition over: an owner before fails at its next append. */
  static async take(options: RunsStreamOptions): Promise<RunsStream> {
    const stream = new RunsStream(options)
    const { log, clock, partition } = options
    for (;;) {
      const head = await log.head(runsStream(partition))
      const event = stream.eventOf({ type: RUNS_TAKEN, data: {} }, idSource(clock.now()).next())
      try {
        stream.revision = (await log.append(runsStream(partition), [event], head < 0 ? 'none' : head)).revision
        return stream
      } catch (error) {
        if (!(error instanceof WrongRevision)) throw error
      }
    }
  }

  /** Revision of the last event. */
  get head(): number {
    return this.revision
  }

  /** Resolves when the fact is durable and has been told. @throws PartitionLost */
  append(fact: Fact): Promise<void> {
    if (this.lost) return Promise.reject(new PartitionLost(this.options.partition))
    return new Promise((resolve, reject) => {
      this.waiting.push({ fact, bytes: sizeOf(fact), resolve, reject })
      if (!this.writing) {
        this.writing = true
        queueMicrotask(() => void this.write())
      }
    })
  }

  /** Everything that still waits fails. */
  close(): void {
    this.lost = true
    this.cancelRetry?.()
    this.rejectAll(this.waiting.splice(0))
  }

  private async write(): Promise<void> {
    while (this.waiting.length > 0 && !this.lost) {
      const batch = this.nextBatch()
      try {
        await this.appendBatch(batch)
        for (const { resolve } of batch) resolve()
      } catch (error) {
        this.lost = true
        this.options.onFailure(error)
        this.rejectAll([...batch, ...this.waiting.splice(0)])
      }
    }
    this.writing = false
  }

  private nextBatch(): Waiting[] {
    let count = 0
    let bytes = 0
    while (
      count < this.waiting.length &&
      count < BATCH_FACTS_MAX &&
      (count === 0 || bytes + this.waiting[count].bytes <= BATCH_BYTES_MAX)
    )
      bytes += this.waiting[count++].bytes
    return this.waiting.splice(0, count)
  }

  private async appendBatch(batch: readonly Waiting[]): Promise<void> {
    const { log, clock, partition, onAppended } = this.options
    const ids = idSource(clock.now())
    const facts = merged(batch.map(({ fact }) => fact))
    const events = facts.map((fact) => this.eventOf(fact, ids.next()))
    for (let failures = 0; ; failures++) {
      if (this.lost) throw new PartitionLost(partition)
      try {
        const { revision } = await log.append(runsStream(partition), events, this.revision)
        for (const fact of facts) onAppended(fact, ++this.revision)
        this.revision = revision
        return
      } catch (error) {
        if (error instanceof WrongRevision) throw new PartitionLost(partition)
        this.options.onFailure(error)
        await this.pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)])
      }
    }
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resume) => {
      const cancel = this.options.clock.after(delayMs, resume)
      this.cancelRetry = () => {
        cancel()
        resume()
      }
    })
  }

  private rejectAll(waiting: readonly Waiting[]): void {
    for (const { reject } of waiting) reject(new PartitionLost(this.options.partition))
  }

  private eventOf(fact: Fact, id: string): NewEvent {
    return { id, type: fact.type, data: encodeJson(fact.data), isJson: true, metadata: { actor: 'reactor:dispatch' } }
  }
}

/** Bytes of a fact at most, near enough for cutting batches: an attempt's size is bounded, and encoding each alone would double its cost. */
const sizeOf = ({ type, data }: Fact): number => (type === ATTEMPTS_MADE ? ATTEMPT_BYTES : encodeJson(data).length)

/** Attempts that follow each other become one event. */
const merged = (facts: readonly Fact[]): Fact[] => {
  const out: Fact[] = []
  let attempts: AttemptMade[] | undefined
  for (const fact of facts) {
    if (fact.type !== ATTEMPTS_MADE) {
      attempts = undefined
      out.push(fact)
    } else if (attempts === undefined) {
      attempts = [...(fact.data as { attempts: AttemptMade[] }).attempts]
      out.push({ type: ATTEMPTS_MADE, data: { attempts } })
    } else attempts.push(...(fact.data as { attempts: AttemptMade[] }).attempts)
  }
  return out
}
