import type { EventLog } from '../../engines/event-log.ts'
import { ATTEMPTS_MADE, RUNS_TAKEN, runsStream, type AttemptMade } from '../../features/automations/events.ts'
import type { Clock } from '../../kernel/clock.ts'
import { encodeJson, type Fact, type NewEvent } from '../../kernel/event.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { OwnedStream, StreamLost, takeStream } from '../../kit/consumers/owned-stream.ts'

export interface RunsStreamOptions {
  log: EventLog
  clock: Clock
  partition: number
  /** Called with each event as soon as it is durable, in order. */
  onAppended: (fact: Fact, revision: number) => void
  onFailure: (error: unknown) => void
}

interface Waiting {
  fact: Fact
  resolve: () => void
  reject: (error: unknown) => void
}

const BATCH_BYTES_MAX = 512 * 1024
const BATCH_FACTS_MAX = 1_000
/** Ids, measures, an error of 200 characters, and 1 KiB of answer (3 KiB as UTF-8 replacement characters), encrypted in base64. */
const ATTEMPT_BYTES = 5 * 1024

/** The one writer of `automation-runs-<partition>`; attempts that go together are one event. Each caller waits for its fact. */
export class RunsStream {
  private readonly stream: OwnedStream<Waiting>

  private constructor({ log, clock, partition, onAppended, onFailure }: RunsStreamOptions, revision: number) {
    const stream = runsStream(partition)
    let facts: Fact[] = []
    this.stream = new OwnedStream<Waiting>({
      log,
      clock,
      stream,
      revision,
      bytesMax: BATCH_BYTES_MAX,
      entriesMax: BATCH_FACTS_MAX,
      eventsOf: (entries) => {
        const ids = idSource(clock.now())
        facts = merged(entries.map(({ fact }) => fact))
        return facts.map((fact) => eventOf(fact, ids.next()))
      },
      onAppended: (entries, firstRevision) => {
        for (const [i, fact] of facts.entries()) onAppended(fact, firstRevision + i)
        for (const { resolve } of entries) resolve()
      },
      onLost: (entries) => {
        for (const { reject } of entries) reject(new StreamLost(stream))
      },
      onFailure,
    })
  }

  /** Takes the partition over: a previous owner fails at its next append. */
  static async take(options: RunsStreamOptions): Promise<RunsStream> {
    const { log, clock, partition } = options
    const taken = eventOf({ type: RUNS_TAKEN, data: {} }, idSource(clock.now()).next())
    return new RunsStream(options, await takeStream(log, runsStream(partition), taken))
  }

  get head(): number {
    return this.stream.head
  }

  /** Whether nothing more can be appended: another process writes it. */
  get isLost(): boolean {
    return this.stream.failure !== undefined
  }

  /**
   * Resolves when the fact is durable and `onAppended` was called.
   * @param bytes maximum of its data, where known
   * @throws StreamLost
   */
  append(fact: Fact, bytes = sizeOf(fact)): Promise<void> {
    return new Promise((resolve, reject) => this.stream.push({ fact, resolve, reject }, bytes))
  }

  /** All waiting facts fail. */
  close(): void {
    this.stream.close()
  }
}

const eventOf = (fact: Fact, id: string): NewEvent => ({
  id,
  type: fact.type,
  data: encodeJson(fact.data),
  isJson: true,
  metadata: { actor: 'reactor:dispatch' },
})

/** Maximum of a fact's bytes, near enough to cut batches: attempts are bounded; encoding each would double its cost. */
const sizeOf = ({ type, data }: Fact): number => (type === ATTEMPTS_MADE ? ATTEMPT_BYTES : encodeJson(data).length)

/** Consecutive attempts become one event. */
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
