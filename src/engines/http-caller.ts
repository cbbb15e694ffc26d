/** One POST to an address that a customer chose. */
export interface HttpCall {
  /** http or https. */
  url: string
  /** Names and values in turn, in the order sent; a name may repeat. */
  headers: string[]
  body: string
  /** For the whole call: lookup, connect, request and answer. */
  deadlineMs: number
  /** Bytes of the answer's body that are kept; the rest is discarded. */
  answerBytesMax: number
}

export type HttpOutcome =
  | { kind: 'answered'; statusCode: number; retryAfter?: string; answer: string }
  /** No status line in time; `error` is one short sentence without secrets. */
  | { kind: 'failed'; error: string }

/** Options of `fetch` that its callers set. */
export interface FetchOptions {
  method?: string
  headers?: { [name: string]: string }
  body?: string | URLSearchParams
  signal?: AbortSignal
}

/**
 * Calls out over HTTP. Promises of every engine:
 * - Always resolves, at the latest when the deadline is over; a status that came in time counts, however slowly the
 *   body follows.
 * - The address actually connected to is checked, literal or looked up; special ranges are refused in both families
 *   unless allowed. Redirects are not followed.
 * - Connections are kept alive for each origin, and callers of one origin never wait for each other's answers.
 */
export interface HttpCaller {
  post(call: HttpCall): Promise<HttpOutcome>
  /** A call whose answer is read by the caller, until its signal ends it. @throws Error for what `post` would refuse too */
  fetch(url: string, options: FetchOptions): Promise<Response>
  /** Why this url would never be called: it is malformed, not http(s), or names a refused address literally. */
  refusal(url: string): string | undefined
  close(): Promise<void>
}
