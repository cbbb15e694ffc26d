import type { Mailer } from '../../../engines/mailer.ts'
import { identityOf } from '../../../features/identity/sessions/authenticate.ts'
import { ACCESS_USERS, type AccessUserRow, ORGANIZATIONS_TABLE, USERS_TABLE } from '../../../features/identity/views.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import { idFrom } from '../../../kit/commands/ids.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import { htmlOf } from '../../mail/render-mail.ts'
import { retryAfterMs } from '../retry-schedule.ts'
import type { Work } from './action.ts'
import { chatFormOf, isRefusedBy } from './chat-message.ts'
import { type InsideServices, isId, originOf } from './inside.ts'
import { MailAllowance } from './mail-allowance.ts'
import type { NotificationChannel } from './notification-details.ts'
import { GONE } from './notification-recipients.ts'
import { chatRequestBody, notificationText } from './notification-text.ts'
import { TellUser } from './tell-user.ts'
import type { WebhookServices } from './webhook.ts'

export type NotificationServices = InsideServices &
  WebhookServices & {
    mailer: Mailer
    publicUrl: string
  }

/** Outcome of notifying one recipient. Errors are short sentences without secrets and addresses. */
export type Told =
  | { kind: 'done'; statusCode?: number; answer?: string }
  /** Permanent. `isGone`: later messages would be refused too. */
  | { kind: 'refused'; error: string; statusCode?: number; answer?: string; isGone?: boolean }
  | { kind: 'failed'; error?: string; statusCode?: number; answer?: string; retryAfterMs?: number }

/** Notifies one recipient of a run; a repeat is the same message, by its id. */
export type Tell = (work: Work, recipient: string) => Promise<Told>

export const channelsOf = (services: NotificationServices): { [channel in NotificationChannel]: Tell } => {
  const allowance = new MailAllowance(services.tables, services.keyring)
  const users = new TellUser(services.log)
  return {
    email: (work, recipient) => mailTo(services, allowance, work, recipient),
    chat: (work, url) => postTo(services, work, url),
    inApp: (work, userId) => notify(services, users, work, userId),
  }
}

/** Users no longer active are passed over if others are notified. */
const GONE_USER: Told = { kind: 'refused', error: GONE }

const notify = async (services: NotificationServices, users: TellUser, work: Work, userId: string): Promise<Told> => {
  const { automation, run } = work
  const { organizationId, _id: automationId } = automation
  if ((await activeUser(services, organizationId, userId)) === undefined) return GONE_USER
  const { metadata, now } = originOf(services, work)
  const { event, subject: about } = run.trigger
  const notificationId = idFrom('notification', run.runId, userId)
  const said = { ...notificationText(work), automationId, event, about: { type: about.type, id: about.id } }
  const made = { organizationId, userId, notificationId, ...said, at: formatTime(now) }
  await users.tell(made, metadata)
  return { kind: 'done' }
}

const mailTo = async (
  services: NotificationServices,
  allowance: MailAllowance,
  work: Work,
  recipient: string,
): Promise<Told> => {
  const { automation, run } = work
  const { organizationId, name } = automation
  const reached = isId(recipient) ? await addressOf(services, organizationId, recipient) : foreign(recipient)
  if (reached === undefined) return GONE_USER
  const now = services.clock.now()
  const over = await allowance.count(organizationId, reached.address, reached.isForeign)
  if (over !== undefined) return { kind: 'failed', error: over.error, retryAfterMs: Math.max(0, over.until - now) }
  const organization = await services.tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
  const { subject = name, text } = notificationText(work)
  const end = `${organization?.name ?? 'Waymark'} · ${name}`
  const outcome = await services.mailer.send({
    id: idFrom('notification-mail', run.runId, recipient),
    to: reached.address,
    subject,
    text: `${text}\n\n-- \n${end}\n`,
    html: htmlOf({ language: await languageOf(services, recipient, organization), lines: text.split(/\n{2,}/), end }),
    at: run.trigger.at,
  })
  return outcome.kind === 'sent' ? { kind: 'done' } : outcome
}

/** The reader's own, otherwise that of the organization. */
const languageOf = async (
  { tables }: NotificationServices,
  recipient: string,
  organization: Row | undefined,
): Promise<string> => {
  const user = isId(recipient) ? await tables.get(USERS_TABLE, String(organization?._id), recipient) : undefined
  const settings = organization?.settings as JsonObject | undefined
  return String(user?.language ?? settings?.language ?? 'en')
}

const foreign = (address: string) => ({ address, isForeign: true })

/** Address of an active user: the one that they have confirmed, otherwise the one that somebody entered. */
const addressOf = async (services: NotificationServices, organizationId: string, userId: string) => {
  const user = await activeUser(services, organizationId, userId)
  if (user === undefined) return undefined
  const confirmed = (await identityOf(services.tables, user))?.verifiedEmail
  return confirmed === undefined ? foreign(user.email) : { address: confirmed, isForeign: false }
}

const activeUser = async (
  { tables }: NotificationServices,
  organizationId: string,
  userId: string,
): Promise<AccessUserRow | undefined> => {
  const user = await tables.get<AccessUserRow>(ACCESS_USERS.name, organizationId, userId)
  return user?.status === 'active' ? user : undefined
}

const DEADLINE_MS = 15_000
const ANSWER_BYTES_MAX = 1024
const STATUS_GONE = 410

const postTo = async ({ caller, clock }: NotificationServices, work: Work, url: string): Promise<Told> => {
  const headers = ['content-type', 'application/json', 'user-agent', 'Waymark-Notifications/1']
  const body = JSON.stringify(chatRequestBody(work, url))
  const outcome = await caller.post({ url, headers, body, deadlineMs: DEADLINE_MS, answerBytesMax: ANSWER_BYTES_MAX })
  if (outcome.kind === 'failed') return outcome
  const { statusCode, answer, retryAfter } = outcome
  const seen = { statusCode, ...(answer !== '' && { answer }) }
  if (statusCode === STATUS_GONE) return { kind: 'refused', error: 'the chat is gone', ...seen, isGone: true }
  if (statusCode >= 200 && statusCode < 300 && !isRefusedBy(chatFormOf(url), answer)) return { kind: 'done', ...seen }
  return { kind: 'failed', ...seen, retryAfterMs: retryAfterMs(retryAfter, clock.now()) }
}
