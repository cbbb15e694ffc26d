/**
 * Every failure a client can see: its code, its HTTP status, the sentence a person can act on, and whether the same
 * request may succeed later unchanged. docs/errors.md is made from this table and a test compares both.
 */
export const ERRORS = {
  invalid: { status: 400, retryable: false, text: 'The request is not valid.' },
  unauthenticated: { status: 401, retryable: false, text: 'Send a valid access token as a bearer credential.' },
  invalid_credentials: { status: 401, retryable: false, text: 'E-mail or password is wrong.' },
  wrong_password: { status: 403, retryable: false, text: 'The password is wrong.' },
  wrong_code: { status: 403, retryable: false, text: 'The code is wrong, or was used before.' },
  second_factor_required: {
    status: 403,
    retryable: false,
    text: 'Your organization asks for a second factor; set it up first.',
  },
  forbidden: {
    status: 403,
    retryable: false,
    text: 'You lack the permission for this; ask an administrator of your organization.',
  },
  not_found: { status: 404, retryable: false, text: 'There is nothing at this address.' },
  method_not_allowed: { status: 405, retryable: false, text: 'This path does not take that method.' },
  conflict: { status: 409, retryable: false, text: 'The request conflicts with what is there.' },
  taken_away: {
    status: 409,
    retryable: false,
    text: 'This is no longer yours: it was taken back, moved, or given to somebody else.',
  },
  stale_version: { status: 409, retryable: false, text: 'The resource has changed since you read it; read it again.' },
  in_progress: { status: 409, retryable: true, text: 'The first request with this Idempotency-Key is still running.' },
  key_in_use: { status: 409, retryable: false, text: 'This value is taken by another record.' },
  quota: { status: 409, retryable: false, text: 'This would be more than this server allows.' },
  too_large: { status: 413, retryable: false, text: 'The request is larger than allowed.' },
  unsupported_type: { status: 415, retryable: false, text: 'This content type is not accepted here.' },
  key_reused: { status: 422, retryable: false, text: 'This Idempotency-Key was used with another body.' },
  rate_limited: { status: 429, retryable: true, text: 'Too many requests; try again later.' },
  overloaded: { status: 503, retryable: true, text: 'The service is overloaded; try again later.' },
  engine_down: { status: 503, retryable: true, text: 'A storage engine does not answer; try again later.' },
  unknown_tracker: {
    status: 503,
    retryable: true,
    text: 'No tracker has the name that the device sends; create one with it as externalId, or let the ingest key do so.',
  },
  forbidden_tracker: {
    status: 503,
    retryable: true,
    text: 'This key may not send points of that tracker; use the key of its hub.',
  },
  tracker_limit: {
    status: 503,
    retryable: true,
    text: 'The organization has as many trackers as this server allows; raise --trackers-max or delete some.',
  },
  not_available: { status: 400, retryable: false, text: 'This is not available on this server.' },
  internal: { status: 500, retryable: true, text: 'Something went wrong on our side; it has been recorded.' },
} as const

export type ErrorCode = keyof typeof ERRORS

/** One fault of a body or a query: a JSON pointer and the value expected there. */
export interface FieldError {
  path: string
  message: string
}

export interface FailureDetails {
  /** Replaces the text of the table. */
  message?: string
  /** Replaces the status of the table (only where one code serves two statuses, such as `not_available`). */
  status?: number
  errors?: FieldError[]
  /** Seconds for the Retry-After header. */
  retryAfterSeconds?: number
  /** Further members of the error body, such as `fields` of a 403 or `version` of a 409. */
  extra?: { [member: string]: unknown }
  cause?: unknown
}

/** A failure that is answered to the client as it stands. */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly details: FailureDetails

  constructor(code: ErrorCode, details: FailureDetails = {}) {
    super(details.message ?? ERRORS[code].text, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'Failure'
    this.code = code
    this.status = details.status ?? ERRORS[code].status
    this.details = details
  }
}

/** A 400 that names one field, for example `invalid('/hubLat', 'must be <= 90')`. */
export const invalid = (path: string, message: string): Failure =>
  new Failure('invalid', { message: `${path} ${message}`, errors: [{ path, message }] })

/** A 409 for a value that another record has, for example `taken('/name')`. */
export const taken = (path: string, code: 'key_in_use' | 'conflict' = 'key_in_use'): Failure => {
  const message = 'is taken by another record'
  return new Failure(code, { message: `${path} ${message}.`, errors: [{ path, message }] })
}

/** What a write answers; undefined where its subject was deleted meanwhile. */
export const unlessGone = async <Result>(write: Promise<Result>): Promise<Result | undefined> => {
  try {
    return await write
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined
    throw error
  }
}

/** Faults that one answer names. */
export const FAULTS_MAX = 20

/** `whole` names the subject of a fault without a path. @throws Failure invalid that names each fault, up to 20 */
export const assertNoFaults = (faults: readonly FieldError[], whole = 'The body'): void => {
  if (faults.length === 0) return
  const [{ path, message }] = faults
  throw new Failure('invalid', { message: `${path || whole} ${message}`, errors: faults.slice(0, FAULTS_MAX) })
}
