import { isRecipient } from '../../../kernel/recipient.ts'
import type { HttpCaller } from '../../../engines/http-caller.ts'
import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import { USERS_TABLE } from '../../../features/identity/views.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import { assertNoFaults, type FieldError, invalid } from '../../../kernel/errors.ts'
import type { Json, JsonObject } from '../../../kernel/json.ts'
import { textFault } from '../../../kernel/text.ts'
import { NAMES_NOTHING } from '../../../kit/resource/references.ts'
import { templateFault } from '../../../kit/values/template.ts'
import { DETAILS_PATH, isId, membersOf } from './inside.ts'

const CHANNELS = ['email', 'chat', 'inApp'] as const
export type NotificationChannel = (typeof CHANNELS)[number]

export interface NotificationDetails {
  channel: NotificationChannel
  /** Ids of users; of the channel `email` also addresses, of `chat` urls. */
  to: string | string[]
  subject?: string
  text: string
}

const RECIPIENTS_MAX = 20
const SUBJECT_CHARS_MAX = 500
const TEXT_CHARS_MAX = 10_000
const URL_CHARS_MAX = 2_048
/** Stands for what is secret in the url of a chat; sent back it keeps the url. */
const MASK = '/***'

export const recipientsOf = (details: Details): string[] => [(details as unknown as NotificationDetails).to].flat()

/** The details as anybody may read them: whoever knows the url of a chat may write to it. */
export const shownDetails = (details: Details): JsonObject => {
  const { channel, to } = details as unknown as NotificationDetails
  if (channel !== 'chat') return details
  return { ...details, to: Array.isArray(to) ? to.map(maskedUrl) : maskedUrl(to) }
}

export const maskedUrl = (url: string): string => new URL(url).origin + MASK

/** Nobody has told what they do not see, nor sees: others are named by whoever may see users. */
export const mayName = ({ userId, permissions }: UserCaller, recipients: readonly string[]): boolean =>
  permissions.has('view/user') || recipients.every((one) => !isId(one) || one === userId)

/** @throws Failure invalid */
export const checkNotification = async (
  caller: Pick<HttpCaller, 'refusal'>,
  sent: JsonObject | undefined,
  context: DetailsContext,
  before: Details | undefined,
): Promise<Details> => {
  const details = membersOf(sent, ['channel', 'to', 'subject', 'text'], ['channel', 'to', 'text'])
  const channel = details.channel as NotificationChannel
  if (!CHANNELS.includes(channel)) throw invalid(`${DETAILS_PATH}/channel`, `must be one of ${CHANNELS.join(', ')}`)
  const known = before?.channel === channel ? recipientsOf(before) : []
  const to = channel === 'chat' ? unmasked(details.to, known) : lowerIds(details.to)
  const faults: FieldError[] = [
    ...templateFaults(context, details.subject, 'subject'),
    ...templateFaults(context, details.text, 'text'),
  ]
  assertNoFaults(faults)
  await assertRecipients({ caller, context, channel, known }, to)
  return { ...details, to }
}

const templateFaults = (
  { pathFault }: DetailsContext,
  template: Json | undefined,
  name: 'subject' | 'text',
): FieldError[] => {
  const path = `${DETAILS_PATH}/${name}`
  const isText = name === 'text'
  if (template === undefined && !isText) return []
  if (typeof template !== 'string') return [{ path, message: 'must be a text' }]
  const charsMax = isText ? TEXT_CHARS_MAX : SUBJECT_CHARS_MAX
  const message =
    template.trim() === ''
      ? 'must not be blank'
      : (templateFault(template, pathFault, charsMax) ?? textFault(template, isText ? 'lines' : 'line'))
  return message === undefined ? [] : [{ path, message }]
}

/** Ids in the form in which they are kept; what is no text is refused later. */
const lowerIds = (to: Json): Json => {
  const lower = (one: Json): Json => (typeof one === 'string' && isId(one) ? one.toLowerCase() : one)
  return Array.isArray(to) ? to.map(lower) : lower(to)
}

/** The urls with those that stand masked as they were: of several of one origin each its own, in their order. */
const unmasked = (to: Json, known: readonly string[]): Json => {
  const left = [...known]
  const whole = (one: Json): Json => {
    if (typeof one !== 'string' || !one.endsWith(MASK)) return one
    const place = left.findIndex((url) => maskedUrl(url) === one)
    return place < 0 ? one : left.splice(place, 1)[0]
  }
  return Array.isArray(to) ? to.map(whole) : whole(to)
}

interface RecipientsContext {
  caller: Pick<HttpCaller, 'refusal'>
  context: DetailsContext
  channel: NotificationChannel
  /** Recipients of before: they are not refused. */
  known: readonly string[]
}

const assertRecipients = async ({ caller, context, channel, known }: RecipientsContext, to: Json): Promise<void> => {
  const base = `${DETAILS_PATH}/to`
  const list = Array.isArray(to) ? to : [to]
  if (list.length === 0 || list.length > RECIPIENTS_MAX)
    throw invalid(base, `must be one to ${RECIPIENTS_MAX} recipients`)
  if (new Set(list).size < list.length) throw invalid(base, 'must name each recipient once')
  const { editor, tables } = context
  const ids = list.filter((one): one is string => typeof one === 'string' && isId(one))
  const rows = ids.length === 0 ? [] : await tables.getMany(USERS_TABLE, editor.organizationId, ids)
  const faultOf = (one: Json): string | undefined => {
    if (typeof one === 'string' && known.includes(one)) return undefined
    if (channel === 'chat') return urlFault(caller, one)
    if (typeof one !== 'string') return 'must be a text'
    if (isId(one)) return rows[ids.indexOf(one)] !== undefined && mayName(editor, [one]) ? undefined : NAMES_NOTHING
    if (channel === 'inApp') return 'must be the id of a user'
    return isRecipient(one) ? undefined : 'must be the id of a user or a public e-mail address'
  }
  assertNoFaults(
    list.flatMap((one, i) => {
      const message = faultOf(one)
      return message === undefined ? [] : [{ path: Array.isArray(to) ? `${base}/${i}` : base, message }]
    }),
  )
}

const urlFault = (caller: Pick<HttpCaller, 'refusal'>, url: Json): string | undefined => {
  if (typeof url !== 'string' || url.length > URL_CHARS_MAX)
    return `must be a url of at most ${URL_CHARS_MAX} characters`
  if (url.endsWith(MASK)) return `must be a whole url: there is none that ${MASK} could keep`
  return caller.refusal(url)
}
