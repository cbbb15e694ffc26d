import type { EventLog } from '../../engines/event-log.ts'
import {
  AUTOMATION_CHANGED,
  AUTOMATION_DEACTIVATED,
  AUTOMATION_DELETED,
  AUTOMATION_PREFIXES,
  RUN_REOPENED,
  RUN_RETRY_ASKED,
  type AutomationChanged,
  type RunReopened,
  type RunRetryAsked,
} from '../../features/automations/events.ts'
import type { Clock } from '../../kernel/clock.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { OwnedPartition } from './partition.ts'

export interface HearOptions {
  log: EventLog
  clock: Clock
  owned: () => OwnedPartition[]
  /** Skips what an automation has left in a partition. */
  skip: (automationId: string, owned: OwnedPartition) => Promise<void>
  wake: (automationId: string, organizationId: string) => void
  /** An active automation was edited. */
  renew: (automationId: string, organizationId: string, version: number) => void
  onFailure: (error: unknown) => void
}

const RETRY_MS = 1_000

/**
 * Hears of what is decided about automations: what is left of one that was deactivated is skipped at once, one that was
 * edited is no longer held to fail, and a run that someone asks to try again is owed anew. Each partition remembers up to where it has heard.
 */
export class HearAutomations {
  private readonly options: HearOptions
  private abort = new AbortController()
  private hearing: Promise<void> = Promise.resolve()

  constructor(options: HearOptions) {
    this.options = options
  }

  /** Begins anew from the partition that has heard least. */
  restart(): void {
    this.abort.abort()
    const abort = (this.abort = new AbortController())
    this.hearing = this.hearing.then(() => this.hear(abort.signal))
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.hearing
  }

  private async hear(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.options.owned().length > 0) {
      try {
        const from = Math.min(...this.options.owned().map(({ pending }) => pending.place.automations))
        for await (const { events, checkpoint } of this.options.log.follow(
          { prefixes: AUTOMATION_PREFIXES },
          from < 0 ? undefined : from,
          signal,
        )) {
          for (const event of events) await this.apply(event)
          for (const { pending } of this.options.owned())
            if (pending.place.automations < checkpoint) pending.heardAutomations(checkpoint)
        }
      } catch (error) {
        this.options.onFailure(error)
        await this.pause(signal)
      }
    }
  }

  private async apply(event: RecordedEvent): Promise<void> {
    const isEdited = event.type === AUTOMATION_CHANGED && !endsRuns(event)
    if (isEdited) this.options.renew(automationIdOf(event), event.metadata.organizationId ?? '', event.revision + 1)
    for (const owned of this.options.owned()) {
      if (event.position <= owned.pending.place.automations) continue
      if (event.type === RUN_RETRY_ASKED) await this.reopen(event, owned)
      else if (endsRuns(event)) await this.options.skip(automationIdOf(event), owned)
    }
  }

  private async reopen(event: RecordedEvent, owned: OwnedPartition): Promise<void> {
    const { runId, partition, at, run } = decodeJson<RunRetryAsked>(event.data)
    const automationId = automationIdOf(event)
    if (partition !== owned.partition || owned.pending.get(automationId)?.order.has(runId)) return
    const organizationId = event.metadata.organizationId ?? ''
    if (run === undefined || (await owned.pending.rows.get([runId])).length > 0) return
    const data: RunReopened = { ...run, runId, automationId, dueAt: at }
    await owned.stream.append({ type: RUN_REOPENED, data })
    this.options.wake(automationId, organizationId)
  }

  private pause(signal: AbortSignal): Promise<void> {
    return new Promise((resume) => {
      const cancel = this.options.clock.after(RETRY_MS, resume)
      signal.addEventListener(
        'abort',
        () => {
          cancel()
          resume()
        },
        { once: true },
      )
    })
  }
}

const automationIdOf = ({ stream }: RecordedEvent): string => stream.slice(stream.indexOf('-') + 1)

const endsRuns = ({ type, data }: RecordedEvent): boolean =>
  type === AUTOMATION_DEACTIVATED ||
  type === AUTOMATION_DELETED ||
  (type === AUTOMATION_CHANGED && !decodeJson<AutomationChanged>(data).content.isActive)
