import {
  AUTOMATION_CHANGED,
  AUTOMATION_CREATED,
  AUTOMATION_PREFIXES,
  type AutomationChanged,
  type AutomationCreated,
} from '../../features/automations/events.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'

const LISTED_MS = 10_000

/** Whether the table has, within the time, all events of automations up to a position. @throws Failure engine_down */
export type AutomationsListed = (position: number, timeoutMs: number) => Promise<boolean>

export const isOfAutomation = ({ stream }: RecordedEvent): boolean =>
  AUTOMATION_PREFIXES.some((prefix) => stream.startsWith(prefix))

/** Whether an automation may count from this event on. */
export const mayActivate = ({ type, data }: RecordedEvent): boolean =>
  (type === AUTOMATION_CREATED && decodeJson<AutomationCreated>(data).content.isActive) ||
  (type === AUTOMATION_CHANGED && decodeJson<AutomationChanged>(data).content.isActive)

/**
 * Waits for the table to reflect these events of automations. Left out, it is taken to be complete.
 * @throws Failure engine_down while it is behind: the events have to be handed over again
 */
export const assertAutomationsListed = async (
  { automationsListed }: { automationsListed?: AutomationsListed },
  events: readonly RecordedEvent[],
): Promise<void> => {
  const last = events.findLast((event) => isOfAutomation(event) && mayActivate(event))
  if (automationsListed === undefined || last === undefined) return
  if (!(await automationsListed(last.position, LISTED_MS)))
    throw new Failure('engine_down', { message: 'The table of automations is behind.' })
}
