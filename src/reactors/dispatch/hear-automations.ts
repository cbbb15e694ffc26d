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
import type { FollowerServices } from '../../kit/consumers/follower.ts'
import { assertAutomationsListed, type AutomationsListed, mayActivate } from './activations.ts'
import { HearFacts } from './hear-facts.ts'
import type { Activations } from './owe-past.ts'
import type { OwnedPartition } from './partition.ts'

export interface HearOptions extends FollowerServices {
  owned: () => OwnedPartition[]
  /** Skips the remaining runs of an automation in a partition. */
  skip: (automationId: string, owned: OwnedPartition) => Promise<void>
  wake: (automationId: string, organizationId: string) => void
  /** Owes automations the events after their activations that were looked at before these were known. */
  owePast: (activations: Activations, owned: OwnedPartition) => Promise<void>
  automationsListed?: AutomationsListed
  /** An active automation was edited. */
  renew: (automationId: string, organizationId: string, version: number) => void
}

/**
 * Follows decisions about automations: an activated one counts from its place in the log on, the rest of a deactivated
 * one is skipped at once, an edited one is no longer considered failing, and a run that someone asks to retry is owed
 * again.
 */
export const hearAutomations = (options: HearOptions): HearFacts =>
  new HearFacts(options, options.owned, {
    name: 'hear-automations',
    prefixes: AUTOMATION_PREFIXES,
    heard: ({ pending }) => pending.progress.automations,
    moveTo: ({ pending }, position) => pending.heardAutomations(position),
    apply: async (events, hearing) => {
      for (const event of events) await apply(options, event, hearing)
      await assertAutomationsListed(options, events)
      const activating = events.filter(mayActivate)
      await Promise.all(hearing.map((owned) => activate(options, activating, owned)))
    },
  })

const activate = async (
  { owePast }: HearOptions,
  activating: readonly RecordedEvent[],
  owned: OwnedPartition,
): Promise<void> => {
  const unheard = activating.filter(({ position }) => position > owned.pending.progress.automations)
  if (unheard.length > 0) await owePast(new Map(unheard.map((event) => [automationIdOf(event), event.position])), owned)
}

const apply = async (
  { renew, skip, wake }: HearOptions,
  event: RecordedEvent,
  hearing: readonly OwnedPartition[],
): Promise<void> => {
  const isEdited = event.type === AUTOMATION_CHANGED && !endsRuns(event)
  if (isEdited) renew(automationIdOf(event), event.metadata.organizationId ?? '', event.revision + 1)
  for (const one of hearing) {
    if (event.position <= one.pending.progress.automations) continue
    if (event.type === RUN_RETRY_ASKED) await reopen(event, one, wake)
    else if (endsRuns(event)) await skip(automationIdOf(event), one)
  }
}

const reopen = async (event: RecordedEvent, owned: OwnedPartition, wake: HearOptions['wake']): Promise<void> => {
  const { runId, partition, at, run } = decodeJson<RunRetryAsked>(event.data)
  const automationId = automationIdOf(event)
  if (partition !== owned.partition || owned.pending.get(automationId)?.order.has(runId)) return
  const organizationId = event.metadata.organizationId ?? ''
  if ((await owned.pending.rows.get([runId])).length > 0) return
  const data: RunReopened = { ...run, runId, automationId, dueAt: at }
  await owned.stream.append({ type: RUN_REOPENED, data })
  wake(automationId, organizationId)
}

const automationIdOf = ({ stream }: RecordedEvent): string => stream.slice(stream.indexOf('-') + 1)

const endsRuns = ({ type, data }: RecordedEvent): boolean =>
  type === AUTOMATION_DEACTIVATED ||
  type === AUTOMATION_DELETED ||
  (type === AUTOMATION_CHANGED && !decodeJson<AutomationChanged>(data).content.isActive)
