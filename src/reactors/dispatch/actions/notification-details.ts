import { isDeepStrictEqual } from 'node:util'
import { isRecipient } from '../../../kernel/recipient.ts'
import type { HttpCaller } from '../../../engines/http-caller.ts'
import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import { ROLES_TABLE, USERS_TABLE } from '../../../features/identity/views.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import { assertNoFaults, type FieldError, invalid } from '../../../kernel/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import { textFault } from '../../../kernel/text.ts'
import { NAMES_NOTHING } from '../../../kit/resource/references.ts'
import { templateFault } from '../../../kit/values/template.ts'
import { textPathFault } from './follow-link.ts'
import { DETAILS_PATH, isId, membersOf } from './inside.ts'

const CHANNELS = ['email', 'chat', 'inApp'] as const
export type NotificationChannel = (typeof CHANNELS)[number]

/**
 * The id of a user, for the channel `email` also an address, for `chat` a url; the users of a role; or the users or the
 * address at a path in the data of the event.
 */
export type Recipient = string | { roleId: string } | { ref: string }

export interface NotificationDetails {
  channel: NotificationChannel
  to: Recipient | Recipient[]
  subject?: string
  text: string
}

export const RECIPIENTS_MAX = 200
const SUBJECT_CHARS_MAX = 500
const TEXT_CHARS_MAX = 10_000
const URL_CHARS_MAX = 2_048
const REF_CHARS_MAX = 200
/** Replaces the secret part of a chat's url; sent back it keeps the url. */
const MASK = '/***'

export const recipientsOf = (details: Details): Recipient[] => [(details as unknown as NotificationDetails).to].flat()

export const chatsOf = (details: Details): string[] => recipientsOf(details).filter((one) => typeof one === 'string')

/** The details as anybody may read them: the url of a chat is enough to write to it. */
export const shownDetails = (details: Details): JsonObject => {
  const { channel, to } = details as unknown as NotificationDetails
  if (channel !== 'chat') return details
  const urls = chatsOf(details).map(maskedUrl)
  return { ...details, to: Array.isArray(to) ? urls : urls[0] }
}

export const maskedUrl = (url: string): string => new URL(url).origin + MASK

/** Only callers that may see users may name others, by id or role. */
export const mayName = ({ userId, permissions }: UserCaller, recipients: readonly Recipient[]): boolean =>
  permissions.has('view/user') ||
  recipients.every((one) => (typeof one === 'string' ? !isId(one) || one === userId : 'ref' in one))

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
  const to = channel === 'chat' ? unmasked(details.to, chatsOf(before ?? {})) : lowerIds(details.to)
  const faults: FieldError[] = [
    ...templateFaults(context, details.subject, 'subject'),
    ...templateFaults(context, details.text, 'text'),
  ]
  assertNoFaults(faults)
  await assertRecipients({ caller, context, channel, known }, to)
  return { ...details, to }
}

const templateFaults = (
  context: DetailsContext,
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
      : (templateFault(template, textPathFault(context), charsMax) ?? textFault(template, isText ? 'lines' : 'line'))
  return message === undefined ? [] : [{ path, message }]
}

/** Ids in their stored form; values that are no text are refused later. */
const lowerIds = (to: Json): Json => {
  const lower = (one: Json): Json => {
    if (isObject(one) && typeof one.roleId === 'string') return { ...one, roleId: one.roleId.toLowerCase() }
    return typeof one === 'string' && isId(one) ? one.toLowerCase() : one
  }
  return Array.isArray(to) ? to.map(lower) : lower(to)
}

/** The urls with masked ones restored: of several of one origin each its own, in their order. */
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
  /** Earlier recipients: they are not refused. */
  known: readonly Recipient[]
}

const assertRecipients = async (asked: RecipientsContext, to: Json): Promise<void> => {
  const base = `${DETAILS_PATH}/to`
  const list = Array.isArray(to) ? to : [to]
  if (list.length === 0 || list.length > RECIPIENTS_MAX)
    throw invalid(base, `must be one to ${RECIPIENTS_MAX} recipients`)
  if (new Set(list.map((one) => JSON.stringify(one))).size < list.length)
    throw invalid(base, 'must name each recipient once')
  const isThere = await lookedUp(asked.context, list)
  assertNoFaults(
    list.flatMap((one, i) => {
      const message = recipientFault(asked, one, isThere)
      return message === undefined ? [] : [{ path: Array.isArray(to) ? `${base}/${i}` : base, message }]
    }),
  )
}

/** The named users and roles that exist. */
const lookedUp = async (
  { editor, tables }: DetailsContext,
  list: readonly Json[],
): Promise<(id: string) => boolean> => {
  const found = new Set<string>()
  const userIds = list.flatMap((one) => (typeof one === 'string' && isId(one) ? [one] : []))
  const roleIds = list.flatMap((one) => (isObject(one) && typeof one.roleId === 'string' ? [one.roleId] : []))
  for (const [table, ids] of [
    [USERS_TABLE, userIds],
    [ROLES_TABLE, roleIds],
  ] as const) {
    const rows = ids.length === 0 ? [] : await tables.getMany(table, editor.organizationId, ids)
    for (const [i, id] of ids.entries()) if (rows[i] !== undefined) found.add(id)
  }
  return (id) => found.has(id)
}

const recipientFault = (
  { caller, context, channel, known }: RecipientsContext,
  one: Json,
  isThere: (id: string) => boolean,
): string | undefined => {
  if (known.some((other) => isDeepStrictEqual(other, one))) return undefined
  if (channel === 'chat') return urlFault(caller, one)
  if (isObject(one)) return memberFault(context, one, isThere)
  if (typeof one !== 'string') return 'must be a text, {roleId} or {ref}'
  if (isId(one)) return isThere(one) && mayName(context.editor, [one]) ? undefined : NAMES_NOTHING
  if (channel === 'inApp') return 'must be the id of a user, {roleId} or {ref}'
  return isRecipient(one) ? undefined : 'must be the id of a user, a public e-mail address, {roleId} or {ref}'
}

const memberFault = (
  { editor, event, pathFault }: DetailsContext,
  one: JsonObject,
  isThere: (id: string) => boolean,
): string | undefined => {
  const { roleId, ref } = one
  if (Object.keys(one).length !== 1 || typeof (roleId ?? ref) !== 'string') return 'must be {roleId} or {ref}'
  if (typeof roleId === 'string') return isThere(roleId) && mayName(editor, [{ roleId }]) ? undefined : NAMES_NOTHING
  const path = ref as string
  if (path.length > REF_CHARS_MAX) return `must name a path of at most ${REF_CHARS_MAX} characters`
  if (path.split('.').includes('__proto__')) return 'must not name __proto__'
  return path === '' ? `must name a path in the data of ${event}` : pathFault(path)
}

const urlFault = (caller: Pick<HttpCaller, 'refusal'>, url: Json): string | undefined => {
  if (typeof url !== 'string' || url.length > URL_CHARS_MAX)
    return `must be a url of at most ${URL_CHARS_MAX} characters`
  if (url.endsWith(MASK)) return `must be a whole url: there is none that ${MASK} could keep`
  return caller.refusal(url)
}
