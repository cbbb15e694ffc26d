import { createHmac } from 'node:crypto'
import type { HttpCaller } from '../../../engines/http-caller.ts'
import type { Details } from '../../../features/automations/action-type.ts'
import { openSecrets } from '../../../features/automations/sealed.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { invalid } from '../../../kernel/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import { retryAfterMs } from '../retry-schedule.ts'
import type { Action, Outcome, Work } from './action.ts'

interface Header {
  key: string
  value: string
}

interface WebhookDetails {
  url: string
  headers: Header[]
}

/** Answered in place of the value of a header; sent back, it keeps the value. */
const MASK = '***'
const DEADLINE_MS = 15_000
const GONE = 410
/** Bytes of the receiver's answer that the log of runs keeps. */
const ANSWER_BYTES_MAX = 1024
const URL_CHARS_MAX = 2_048
const HEADERS_MAX = 50
const HEADER_BYTES_MAX = 8 * 1024
const SECRET_PREFIX = 'whsec_'
/** Headers of the connection or the framing, which the sender sets itself. */
const RESERVED_HEADERS = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'keep-alive',
  'te',
  'trailer',
  'expect',
  'proxy-authorization',
  'proxy-connection',
])
/** RFC 9110, 5.6.2. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export interface WebhookServices {
  caller: HttpCaller
  keyring: Keyring
  clock: Clock
}

/** Calls a url with a signed request after Standard Webhooks 1.0. */
export const webhookAction = (services: WebhookServices): Action => ({
  isSigned: true,
  isOutside: () => true,
  readsLists: () => false,
  needs: [],
  check: (details, _context, before) => checkDetails(services.caller, details, before as WebhookDetails | undefined),
  show: (details) => {
    const { url, headers } = details as unknown as WebhookDetails
    return { url, headers: headers.map(({ key }) => ({ key, value: MASK })) }
  },
  preview: async (work) => {
    const { url, standard, configured, body } = requestOf(services, work, services.clock.now())
    const masked = configured.map(({ key }) => [key, MASK])
    const headers = { ...standard, ...Object.fromEntries(masked) }
    return { isSent: false, method: 'POST', url, headers, body: JSON.parse(body) }
  },
  attempt: (work) => send(services, work),
})

const send = async (services: WebhookServices, work: Work): Promise<Outcome> => {
  const { caller, clock } = services
  const { url, standard, configured, body } = requestOf(services, work, clock.now())
  const headers = [...Object.entries(standard), ...configured.map(({ key, value }) => [key, value])].flat()
  const outcome = await caller.post({ url, headers, body, deadlineMs: DEADLINE_MS, answerBytesMax: ANSWER_BYTES_MAX })
  if (outcome.kind === 'failed') return { kind: 'failed', error: outcome.error }
  const { statusCode, answer, retryAfter } = outcome
  const seen = { statusCode, ...(answer !== '' && { answer }) }
  if (statusCode >= 200 && statusCode < 300) return { kind: 'done', ...seen }
  return {
    kind: 'failed',
    ...seen,
    retryAfterMs: retryAfterMs(retryAfter, clock.now()),
    ...(statusCode === GONE && { ends: 'automation' }),
  }
}

/** The request of one attempt at `now`: the standard headers first, which configured ones do not override. */
const requestOf = ({ keyring }: WebhookServices, { automation, details, run, data }: Work, now: number) => {
  const { url, headers } = details as unknown as WebhookDetails
  const { runId, sequence, trigger } = run
  const body = JSON.stringify({
    type: trigger.event,
    timestamp: formatTime(trigger.at),
    data: { automationId: automation._id, sequence, ...data },
  })
  const signed = signWebhook(runId, Math.floor(now / 1000), body, openSecrets(keyring, automation, now))
  const configured = headers.filter(({ key }) => !Object.hasOwn(FIXED_HEADERS, key.toLowerCase()))
  const hasOwnAgent = configured.some(({ key }) => key.toLowerCase() === 'user-agent')
  const standard = { 'content-type': 'application/json', ...(!hasOwnAgent && USER_AGENT), ...signed }
  return { url, standard, configured, body }
}

const USER_AGENT = { 'user-agent': 'Waymark-Webhooks/1' }
/** Configured ones of these names are left out. */
const FIXED_HEADERS = { 'content-type': true, 'webhook-id': true, 'webhook-timestamp': true, 'webhook-signature': true }

/**
 * The headers of Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md):
 * HMAC-SHA256 over `id.timestamp.body` with the bytes after `whsec_`, one signature for each secret.
 * @param timestampS time of the attempt, whole seconds since the epoch
 */
const signWebhook = (
  webhookId: string,
  timestampS: number,
  body: string,
  secrets: readonly string[],
): { [header: string]: string } => ({
  'webhook-id': webhookId,
  'webhook-timestamp': String(timestampS),
  'webhook-signature': secrets.map((secret) => signature(webhookId, timestampS, body, secret)).join(' '),
})

const signature = (webhookId: string, timestampS: number, body: string, secret: string): string => {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${webhookId}.${timestampS}.${body}`).digest('base64')}`
}

const checkDetails = (
  caller: Pick<HttpCaller, 'refusal'>,
  details: JsonObject | undefined,
  before: WebhookDetails | undefined,
): Details => {
  if (details === undefined) throw invalid('/automationDetails', 'is required: {url, headers}')
  const unknown = Object.keys(details).find((name) => !['url', 'headers'].includes(name))
  if (unknown !== undefined) throw invalid(`/automationDetails/${unknown}`, 'is not a known field')
  const { url, headers = [] } = details
  if (typeof url !== 'string' || url.length > URL_CHARS_MAX)
    throw invalid('/automationDetails/url', `must be a text of at most ${URL_CHARS_MAX} characters`)
  const refusal = url === before?.url ? undefined : caller.refusal(url)
  if (refusal !== undefined) throw invalid('/automationDetails/url', refusal)
  return { url, headers: checkHeaders(headers, before?.headers ?? []) as unknown as Json }
}

/** @param before headers whose values `***` keeps: each the value of its name, of several of one name each its own */
const checkHeaders = (headers: Json, before: readonly Header[]): Header[] => {
  const path = '/automationDetails/headers'
  if (headers === null) return []
  if (typeof headers !== 'object') throw invalid(path, 'must be an array of {key, value} or an object')
  const sent: [string, Json][] = Array.isArray(headers)
    ? headers.map((header, i) => [`${path}/${i}`, header])
    : Object.entries(headers).map(([key, value]) => [`${path}/${key}`, { key, value }])
  if (sent.length > HEADERS_MAX) throw invalid(path, `must be at most ${HEADERS_MAX}`)
  const left = [...before]
  const list = sent.map(([at, header]) => {
    const { key, value } = checkHeader(header, at)
    const place = left.findIndex((one) => one.key.toLowerCase() === key.toLowerCase())
    const [kept] = place < 0 ? [] : left.splice(place, 1)
    if (value !== MASK) return { key, value }
    if (kept === undefined) throw invalid(`${at}/value`, `must be a value: there is none that ${MASK} could keep`)
    return { key, value: kept.value }
  })
  if (Buffer.byteLength(JSON.stringify(list)) > HEADER_BYTES_MAX)
    throw invalid(path, `must be at most ${HEADER_BYTES_MAX} bytes together`)
  return list
}

const checkHeader = (header: Json, path: string): Header => {
  if (!isObject(header) || Object.keys(header).some((name) => name !== 'key' && name !== 'value'))
    throw invalid(path, 'must be {key, value}')
  const { key, value } = header
  if (typeof key !== 'string' || !HEADER_NAME.test(key)) throw invalid(`${path}/key`, 'must be the name of a header')
  if (RESERVED_HEADERS.has(key.toLowerCase())) throw invalid(`${path}/key`, `must not be ${key}, which the sender sets`)
  if (typeof value !== 'string' || !HEADER_VALUE.test(value))
    throw invalid(`${path}/value`, 'must be the value of a header')
  return { key, value: value.trim() }
}
