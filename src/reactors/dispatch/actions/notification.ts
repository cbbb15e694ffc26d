import { decodeJson, encodeJson } from '../../../kernel/event.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import { idFrom } from '../../../kit/commands/ids.ts'
import { severalAtOnce } from '../../../kit/commands/several-at-once.ts'
import type { Action, Outcome, Work } from './action.ts'
import { namesFollowUrl, withFollowUrl, withSampleUrl } from './follow-link.ts'
import { type InsideServices, isId, originOf, outcomeOf as insideOutcome } from './inside.ts'
import { channelsOf, type NotificationServices, type Told } from './notification-channels.ts'
import {
  chatsOf,
  checkNotification,
  maskedUrl,
  mayName,
  type NotificationDetails,
  type Recipient,
  RECIPIENTS_MAX,
  recipientsOf,
  shownDetails,
} from './notification-details.ts'
import { BLIND, GONE, resolveRecipients, type Resolved } from './notification-recipients.ts'
import { chatRequestBody, notificationText } from './notification-text.ts'

export const notificationAction = (services: NotificationServices): Action => {
  const channels = channelsOf(services)
  return {
    isSigned: false,
    isOutside: ({ channel }) => channel !== 'inApp',
    // A share is made from the task's row in its table.
    readsLists: namesFollowUrl,
    needs: [],
    check: (details, context, before) => checkNotification(services.caller, details, context, before),
    show: shownDetails,
    names: (details) => namesIn(recipientsOf(details)),
    preview: async (work) => preview(withSampleUrl(services, work)),
    attempt: async (work) => {
      if (!mayName(work.editor, recipientsOf(work.details))) return { kind: 'hidden' }
      const resolved = await resolveRecipients(services.tables, work)
      const said = resolved.recipients.length === 0 ? work : await linkedOrEnd(services, work)
      return 'kind' in said ? said : outcomeOf(await tellAll(services, channels, said, resolved), resolved)
    },
  }
}

/** The work with the link that its texts name, or the end of the run without it. */
const linkedOrEnd = async (services: NotificationServices, work: Work): Promise<Work | Outcome> => {
  let said = work
  const outcome = await insideOutcome(async () => {
    said = await withFollowUrl(services, work)
    return {}
  })
  return outcome.kind === 'done' ? said : outcome
}

/**
 * Named roles, which cannot be deleted meanwhile, and users, without whom nobody is left; none beside an address, which
 * always exists, or a ref, whose target is unknown.
 */
const namesIn = (recipients: readonly Recipient[]): { users: string[]; roles: string[] } => {
  const users = recipients.filter((one): one is string => typeof one === 'string' && isId(one))
  const roles = recipients.flatMap((one) => (typeof one !== 'string' && 'roleId' in one ? [one.roleId] : []))
  return { users: users.length + roles.length === recipients.length ? users : [], roles }
}

/** Several are notified at once, as a mail may take seconds. */
const AT_ONCE = 8

const tellAll = async (
  services: NotificationServices,
  channels: ReturnType<typeof channelsOf>,
  work: Work,
  { recipients }: Resolved,
): Promise<Told[]> => {
  const { channel } = work.details as unknown as NotificationDetails
  const named = recipientsOf(work.details)
  if (named.length === 1 && typeof named[0] === 'string')
    return Promise.all(recipients.map((one) => channels[channel](work, one)))
  const ended = await endedOf(services, work)
  const told = new Map<string, Told>()
  await severalAtOnce(recipients, AT_ONCE, async (recipient) => {
    const key = keyOf(services, recipient)
    const before = ended.get(key)
    const one = before ?? (await channels[channel](work, recipient))
    if (before === undefined && one.kind !== 'failed') await noteEnd(services, work, key, one)
    told.set(recipient, one)
  })
  return recipients.map((recipient) => told.get(recipient) as Told)
}

/** Outcome of a run that has notified all, or continues for those who could not be reached yet. */
const outcomeOf = (each: readonly Told[], { faults, isCut }: Resolved): Outcome => {
  const all: Told[] = [...each, ...faults.map((error) => ({ kind: 'refused' as const, error }))]
  if (all.length === 0) return { kind: 'done', answer: 'Nobody is there to tell.' }
  const there = all.filter((one) => one.kind !== 'refused' || !PASSED_OVER.includes(one.error))
  const told = there.length === 0 ? all : there
  const failed = told.filter((one) => one.kind === 'failed')
  const refused = told.filter((one) => one.kind === 'refused')
  // Recipients notified by an earlier attempt tell nothing about this one.
  const [first] = [...failed, ...refused, ...told.filter(({ statusCode }) => statusCode !== undefined), ...told]
  const { statusCode, answer = isCut ? `Only the first ${RECIPIENTS_MAX} are told.` : undefined } = first
  const seen = { ...(statusCode !== undefined && { statusCode }), ...(answer !== undefined && { answer }) }
  if (first.kind === 'done') return { kind: 'done', ...seen }
  const count = failed.length > 0 ? failed.length : refused.length
  const which = told.length === 1 ? '' : `${count} of ${told.length} recipients: `
  const error = first.error ?? (which === '' ? undefined : `answered ${statusCode}`)
  const common = { kind: 'failed' as const, ...seen, ...(error !== undefined && { error: which + error }) }
  if (failed.length > 0)
    return { ...common, retryAfterMs: Math.max(...failed.map(({ retryAfterMs = 0 }) => retryAfterMs)) }
  const areAllGone = refused.length === told.length && refused.every(({ isGone }) => isGone)
  return { ...common, ends: areAllGone ? 'automation' : 'run' }
}

/** Users named by id who are gone, or do not see it, are passed over if others are notified. */
const PASSED_OVER: readonly string[] = [GONE, BLIND]

/** Event of the stream `messages-<run>`: a recipient who need not be notified any more. */
const MESSAGE_ENDED = 'messageEnded'
const messagesStream = ({ run }: Work): string => `messages-${run.runId}`
const EVENTS_MAX = 500

interface MessageEnded {
  /** Key of the recipient, which does not reveal who it is. */
  key: string
  /** Absent for a notified one. */
  error?: string
}

const keyOf = ({ keyring }: NotificationServices, recipient: string): string =>
  keyring.hmac('message-recipient', recipient).toString('base64url')

const endedOf = async ({ log }: InsideServices, work: Work): Promise<Map<string, Told>> => {
  if (work.isFirst) return new Map()
  const events = await log.read(messagesStream(work), 0, EVENTS_MAX)
  return new Map(
    events.map(({ data }) => {
      const { key, error } = decodeJson<MessageEnded>(data)
      return [key, error === undefined ? { kind: 'done' } : { kind: 'refused', error }]
    }),
  )
}

const noteEnd = async (services: NotificationServices, work: Work, key: string, told: Told): Promise<void> => {
  const data: MessageEnded = { key, ...(told.kind === 'refused' && { error: told.error }) }
  const id = idFrom(MESSAGE_ENDED, work.run.runId, key)
  const { metadata } = originOf(services, work)
  const event = { id, type: MESSAGE_ENDED, data: encodeJson(data), isJson: true, metadata }
  await services.log.append(messagesStream(work), [event], 'any')
}

const preview = (work: Work): JsonObject => {
  const { channel, to } = shownDetails(work.details) as unknown as NotificationDetails
  const text = { ...notificationText(work) }
  if (channel !== 'chat') return { isSent: false, channel, to, ...text }
  const requests = chatsOf(work.details).map((url) => ({ url: maskedUrl(url), body: chatRequestBody(work, url) }))
  return { isSent: false, channel, to, ...text, requests }
}
