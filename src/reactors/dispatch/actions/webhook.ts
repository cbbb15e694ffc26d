import type { HttpCaller, HttpOutcome } from '../../../engines/http-caller.ts'
import type { AutomationRow } from '../../../features/automations/views.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import { openDetails, openSecrets } from '../../../features/automations/sealed.ts'
import type { Run } from '../run.ts'
import { iso, type EventData } from '../event-data.ts'
import { signWebhook } from '../sign-webhook.ts'

const DEADLINE_MS = 15_000
/** Bytes of the receiver's answer that the log of runs keeps. */
const ANSWER_BYTES_MAX = 1024

export interface WebhookRequest {
  url: string
  headers: { [name: string]: string }
  /** Names and values in turn: the standard ones first, then the configured ones. */
  headerList: string[]
  body: string
}

/** The request of one attempt, as it goes out at `now`. */
export const renderWebhook = (
  keyring: Keyring,
  automation: AutomationRow,
  run: Pick<Run, 'runId' | 'sequence' | 'trigger'>,
  data: EventData,
  now: number,
): WebhookRequest => {
  const { url, headers } = openDetails(keyring, automation)
  const body = JSON.stringify({
    type: run.trigger.event,
    timestamp: iso(run.trigger.at),
    data: { automationId: automation._id, sequence: run.sequence, ...data },
  })
  const standard = {
    'content-type': 'application/json',
    'user-agent': 'Waymark-Webhooks/1',
    ...signWebhook(run.runId, Math.floor(now / 1000), body, openSecrets(keyring, automation, now)),
  }
  const configured = headers.filter(
    ({ key }) => !Object.hasOwn(standard, key.toLowerCase()) || key.toLowerCase() === 'user-agent',
  )
  return {
    url,
    headers: { ...standard, ...Object.fromEntries(configured.map(({ key, value }) => [key, value])) },
    headerList: [...Object.entries(standard), ...configured.map(({ key, value }) => [key, value])].flat(),
    body,
  }
}

export const sendWebhook = (caller: HttpCaller, { url, headerList, body }: WebhookRequest): Promise<HttpOutcome> =>
  caller.post({ url, headers: headerList, body, deadlineMs: DEADLINE_MS, answerBytesMax: ANSWER_BYTES_MAX })
