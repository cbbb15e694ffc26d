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
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { OwnedPartition } from './partition.ts'

export interface HearOptions extends FollowerServices {
  owned: () => OwnedPartition[]
  /** Skips what an automation has left in a partition. */
  skip: (automationId: string, owned: OwnedPartition) => Promise<void>
  wake: (automationId: string, organizationId: string) => void
  /** An active automation was edited. */
  renew: (automationId: string, organizationId: string, version: number) => void
}

/**
 * Hears of what is decided about automations: what is left of one that was deactivated is skipped at once, one that was
 * edited is no longer held to fail, and a run that someone asks to try again is owed anew. Each partition remembers up to where it has heard.
 */
export class HearAutomations {
  private readonly options: HearOptions
  private follower: Follower | undefined
  /** One follower ends before the next begins. */
  private turn: Promise<void> = Promise.resolve()

  constructor(options: HearOptions) {
    this.options = options
  }

  /** Begins anew from the partition that has heard least. */
  restart(): void {
    this.inTurn(() => {
      const heard = this.options.owned().map(({ pending }) => pending.progress.automations)
      if (heard.length > 0) this.follower = this.follow().startBehind(Math.min(...heard))
    })
  }

  close(): Promise<void> {
    return this.inTurn(() => undefined)
  }

  private inTurn(begin: () => void): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.follower?.close()
      this.follower = undefined
      begin()
    })
    return this.turn
  }

  private follow(): Follower {
    return new Follower(this.options, {
      name: 'hear-automations',
      source: { prefixes: AUTOMATION_PREFIXES },
      handle: async ({ events, checkpoint }) => {
        for (const event of events) await this.apply(event)
        for (const { pending } of this.options.owned())
          if (pending.progress.automations < checkpoint) pending.heardAutomations(checkpoint)
        return undefined
      },
    })
  }

  private async apply(event: RecordedEvent): Promise<void> {
    const isEdited = event.type === AUTOMATION_CHANGED && !endsRuns(event)
    if (isEdited) this.options.renew(automationIdOf(event), event.metadata.organizationId ?? '', event.revision + 1)
    for (const owned of this.options.owned()) {
      if (event.position <= owned.pending.progress.automations) continue
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
}

const automationIdOf = ({ stream }: RecordedEvent): string => stream.slice(stream.indexOf('-') + 1)

const endsRuns = ({ type, data }: RecordedEvent): boolean =>
  type === AUTOMATION_DEACTIVATED ||
  type === AUTOMATION_DELETED ||
  (type === AUTOMATION_CHANGED && !decodeJson<AutomationChanged>(data).content.isActive)
