import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { ProcessKey } from '../commands/process.ts'
import { metadataOf, userOf } from '../http/request-context.ts'
import type { IdSource, RouteRequest, Wrote } from '../http/route.ts'

/** Longest time of a write from its checks until it stands in the log and the tables. */
export const LATE_WRITES_MS = 10_000

/** Writer, organization and time. `caller` is absent where the service itself writes. */
export interface WriteOrigin {
  organizationId: string
  caller?: UserCaller
  now: number
  ids: IdSource
  metadata: EventMetadata
  /** The id was drawn for this create, according to its body, and this is its first request. */
  isOwnId?: boolean
  /** As of a command. */
  isOneOfMany?: boolean
}

export interface Written {
  row: Row
  wrote?: Wrote
  /** Values shown once, by their member of the answer. */
  told?: JsonObject
  /** A consequence of the write is still pending; the service will complete it. */
  isPending?: boolean
}

export interface Making {
  body: JsonObject
  /** Read-only and internal fields. */
  extra?: JsonObject
}

export interface Change {
  id: string
  /** `replace` sets every writable field, `amend` is a merge patch. */
  kind: 'replace' | 'amend'
  body: JsonObject
  expectedVersion?: number
}

export interface Deletion {
  id: string
  expectedVersion?: number
  /** Id of the record that replaces it where it is named. */
  replaceWith?: string
  /** Nothing of it is to remain, not even in the log. */
  erase?: boolean
}

/** A record, such as one that names another one. */
export interface RecordRef {
  /** Plural of the resource. */
  plural: string
  id: string
}

/** A record to be deleted. */
export interface LeavingRecord extends RecordRef {
  /** Records that started to name it: the tables may not have them yet. */
  lately: readonly RecordRef[]
}

export interface GiveWayData {
  /** Plural of the resource. */
  plural: string
  id: string
  /** Id of the record that replaces it where it is named. */
  replaceWith: string
}

/** About a deleted record: another one replaces it. */
export const GIVE_WAY: ProcessKey<GiveWayData> = { name: 'give-way' }

/** The writes behind the routes of a resource: the kit's, or a feature's own where one write is several streams. */
export interface ResourceWrites {
  create(origin: WriteOrigin, body: JsonObject): Promise<Written>
  change(origin: WriteOrigin, change: Change): Promise<Written>
  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written>
}

/** The same write without the caller, whose rights were checked already. */
export const asService = ({ caller: _caller, ...origin }: WriteOrigin): WriteOrigin => origin

/** @throws Failure stale_version, which has the present one. */
export const assertVersion = (expected: number | undefined, version: number): void => {
  if (expected !== undefined && expected !== version) throw new Failure('stale_version', { extra: { version } })
}

/** The version that the client saw, from the body or from If-Match. @throws Failure invalid, also where they differ */
export const versionOf = (request: Pick<RouteRequest, 'headers'>, body: JsonObject | undefined): number | undefined => {
  const said = typeof body?.version === 'number' ? body.version : undefined
  const matched = matchedVersion(request.headers.get('if-match'))
  if (said !== undefined && matched !== undefined && said !== matched)
    throw invalid('/version', `is ${said} and If-Match says ${matched}: send one of them, or the same`)
  return said ?? matched
}

const matchedVersion = (header: string | undefined): number | undefined => {
  if (header === undefined || header.trim() === '*') return undefined
  const found = /^(?:W\/)?"?(\d{1,15})"?$/.exec(header.trim())
  if (found === null) throw invalid('/If-Match', 'must be a version, as the ETag of a read answers it')
  return Number(found[1])
}

export const originOf = (
  request: Pick<RouteRequest, 'caller' | 'now' | 'ids' | 'correlationId' | 'traceparent'> &
    Partial<Pick<RouteRequest, 'address' | 'requestMark'>>,
): WriteOrigin => {
  const caller = userOf(request)
  return {
    organizationId: caller.organizationId,
    caller,
    now: request.now,
    ids: request.ids,
    metadata: metadataOf(request),
  }
}
