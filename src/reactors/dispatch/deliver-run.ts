import type { HttpCaller, HttpOutcome } from '../../engines/http-caller.ts'
import type { AttemptMade } from '../../features/automations/events.ts'
import { sealAnswer } from '../../features/automations/sealed.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { renderWebhook, sendWebhook } from './actions/webhook.ts'
import { attemptOf } from './attempt.ts'
import type { Directory } from './directory.ts'
import { eventData, maySee, seenAt } from './event-data.ts'
import type { Run } from './run.ts'

export interface DeliverOptions {
  clock: Clock
  keyring: Keyring
  caller: HttpCaller
  directory: Directory
  /** Delay before each retry, ms. */
  scheduleMs: readonly number[]
}

export interface Delivered {
  outcome: HttpOutcome
  attempt: AttemptMade
}

/**
 * One attempt: renders the webhook from what the event refers to as it is now, sends it, and says where its run stands.
 * `hidden` when the automation's last editor may not see the event as things are now.
 */
export const deliverRun = async (
  { clock, keyring, caller, directory, scheduleMs }: DeliverOptions,
  run: Run,
  automation: AutomationRow,
): Promise<Delivered | 'hidden'> => {
  const { organizationId, subject } = run.trigger
  const [editor, tracker] = await Promise.all([
    directory.editor(organizationId, automation.editorId),
    directory.tracker(organizationId, subject.id, Math.min(seenAt(run.trigger), run.owedAt)),
  ])
  if (editor === undefined || !maySee(directory, editor, run.trigger, tracker)) return 'hidden'
  const data = await eventData(directory, run.trigger, tracker, editor)
  const at = clock.now()
  const begunMs = clock.monotonic()
  const outcome = await sendWebhook(caller, renderWebhook(keyring, automation, run, data, at))
  const endedAt = at + Math.round(clock.monotonic() - begunMs)
  return {
    outcome,
    attempt: attemptOf(run, outcome, at, endedAt, scheduleMs, (answer) => sealAnswer(keyring, answer)),
  }
}
