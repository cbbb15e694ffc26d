import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid, type FieldError } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { EVENT_DATA_TYPES, isGeofenceEvent, type AutomationContent, type AutomationEvent } from './events.ts'
import { faultsOf, schemaOf } from './rules.ts'
import { MASK, type WebhookDetails } from './sealed.ts'

export interface CheckOptions {
  tables: Pick<TableStore, 'get'>
  /** Table of the geofence groups. */
  groupsTable: string
  /** Whether geofences are rolled out to the caller. */
  inRollout: (caller: UserCaller) => boolean
  /** Why a url would never be called. */
  urlRefusal: (url: string) => string | undefined
}

/** A content that holds, its details in clear. */
export type Checked = Omit<AutomationContent, 'details'> & { details: WebhookDetails }

/** Events that concern a task, for the types that change it. */
const NEEDS_TASK = new Set(['moveTask', 'assignTask', 'updateTask'])
const URL_CHARS_MAX = 2_048
const HEADERS_MAX = 50
const HEADER_BYTES_MAX = 8 * 1024
/** Headers that belong to the connection or the framing: they are the sender's own business. */
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

/**
 * The whole of an automation as its editor wants it (shape and required fields are checked by the schema of the route).
 * @param before the details as they were, whose header values `***` keeps
 * @throws Failure invalid that names the field, not_available for a type whose action does not exist yet.
 */
export const checkAutomation = async (
  options: CheckOptions,
  caller: UserCaller,
  wanted: JsonObject,
  before?: WebhookDetails,
): Promise<Checked> => {
  const {
    name,
    automationType,
    isActive = true,
  } = wanted as { name: string; automationType: string; isActive?: boolean }
  const event = wanted.event as AutomationEvent
  const dataType = EVENT_DATA_TYPES[event]
  if (wanted.dataType !== undefined && wanted.dataType !== dataType)
    throw invalid('/dataType', `must be ${dataType}, the data type of ${event}`)
  const fields = rulesFields(wanted.rules)
  if (isGeofenceEvent(event)) await checkGeofence(options, caller, automationType, fields)
  checkType(automationType, event)
  const details = webhookDetails(options, wanted.automationDetails, before)
  assertNone(faultsOf(fields), '/rules/fields')
  return { name, event, dataType, automationType, details, rules: { fields, schema: schemaOf(fields) }, isActive }
}

const checkGeofence = async (
  options: CheckOptions,
  caller: UserCaller,
  automationType: string,
  fields: JsonObject,
): Promise<void> => {
  if (!options.inRollout(caller)) throw invalid('/event', 'is not available to this organization')
  if (automationType !== 'webhook') throw invalid('/automationType', 'must be webhook for a geofence event')
  const { geofenceGroupId } = fields
  const path = '/rules/fields/geofenceGroupId'
  if (typeof geofenceGroupId !== 'string' || geofenceGroupId === '')
    throw invalid(path, 'is required for a geofence event: the id of one geofence group')
  await assertExists(options.tables, options.groupsTable, caller.organizationId, geofenceGroupId, path)
}

const checkType = (automationType: string, event: AutomationEvent): void => {
  if (NEEDS_TASK.has(automationType) && EVENT_DATA_TYPES[event] !== 'task')
    throw invalid('/automationType', `${automationType} needs a task event`)
  if (automationType === 'webhook') return
  throw new Failure('not_available', {
    message: `The automation type ${automationType} is not available on this server yet.`,
    errors: [{ path: '/automationType', message: 'is not available yet' }],
  })
}

const rulesFields = (rules: Json | undefined): JsonObject => {
  const fields = isObject(rules) ? rules.fields : undefined
  return isObject(fields) ? fields : {}
}

const webhookDetails = (
  { urlRefusal }: CheckOptions,
  details: Json | undefined,
  before: WebhookDetails | undefined,
): WebhookDetails => {
  if (!isObject(details)) throw invalid('/automationDetails', 'is required: {url, headers}')
  const unknown = Object.keys(details).find((name) => !['url', 'headers'].includes(name))
  if (unknown !== undefined) throw invalid(`/automationDetails/${unknown}`, 'is not a known field')
  const { url, headers = [] } = details
  if (typeof url !== 'string' || url.length > URL_CHARS_MAX)
    throw invalid('/automationDetails/url', `must be a text of at most ${URL_CHARS_MAX} characters`)
  const refusal = urlRefusal(url)
  if (refusal !== undefined) throw invalid('/automationDetails/url', refusal)
  return { url, headers: withKeptValues(headerList(headers), before?.headers ?? []) }
}

const headerList = (headers: Json): WebhookDetails['headers'] => {
  const path = '/automationDetails/headers'
  if (headers === null) return []
  if (typeof headers !== 'object') throw invalid(path, 'must be an array of {key, value} or an object')
  const list = Array.isArray(headers)
    ? headers.map((header, i) => pair(header, `${path}/${i}`))
    : Object.entries(headers).map(([key, value]) => pair({ key, value }, `${path}/${key}`))
  if (list.length > HEADERS_MAX) throw invalid(path, `must be at most ${HEADERS_MAX}`)
  if (Buffer.byteLength(JSON.stringify(list)) > HEADER_BYTES_MAX)
    throw invalid(path, `must be at most ${HEADER_BYTES_MAX} bytes together`)
  return list
}

/** Gives `***` the value that the header of that name had; of several of one name, each has its own. */
const withKeptValues = (headers: WebhookDetails['headers'], before: WebhookDetails['headers']): typeof headers => {
  const left = [...before]
  return headers.map(({ key, value }, i) => {
    const place = left.findIndex((one) => one.key.toLowerCase() === key.toLowerCase())
    const [kept] = place < 0 ? [] : left.splice(place, 1)
    if (value !== MASK) return { key, value }
    if (kept === undefined)
      throw invalid(`/automationDetails/headers/${i}/value`, `must be a value: there is none that ${MASK} could keep`)
    return { key, value: kept.value }
  })
}

const pair = (header: Json, path: string): { key: string; value: string } => {
  if (!isObject(header) || Object.keys(header).some((name) => name !== 'key' && name !== 'value'))
    throw invalid(path, 'must be {key, value}')
  const { key, value } = header
  if (typeof key !== 'string' || !HEADER_NAME.test(key)) throw invalid(`${path}/key`, 'must be the name of a header')
  if (RESERVED_HEADERS.has(key.toLowerCase())) throw invalid(`${path}/key`, `must not be ${key}, which the sender sets`)
  if (typeof value !== 'string' || !HEADER_VALUE.test(value))
    throw invalid(`${path}/value`, 'must be the value of a header')
  return { key, value: value.trim() }
}

const assertNone = (faults: FieldError[], under: string): void => {
  if (faults.length === 0) return
  const errors = faults.map(({ path, message }) => ({ path: under + path, message }))
  throw new Failure('invalid', { message: `${errors[0].path} ${errors[0].message}`, errors })
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
