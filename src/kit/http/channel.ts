import type { Caller, CredentialKind } from '../../kernel/caller.ts'

/** Close codes of both channels. */
export const CLOSE = {
  badMessage: 4400,
  unauthenticated: 4401,
  forbidden: 4403,
  authTimeout: 4408,
  tooFast: 4429,
  tooLarge: 1009,
  internal: 1011,
  restart: 1012,
} as const

/** Meaning of each close code for a client, for the documentation. */
export const CLOSE_MEANINGS: { [name in keyof typeof CLOSE]: string } = {
  badMessage:
    'A message that is no JSON or no valid binary frame, has no known `type`, whose `points` are no list, or whose `seq` does not rise. Do not send it again.',
  unauthenticated:
    'The credential is missing, wrong, expired or revoked. Get a new token; one that comes in an `auth` message before the end keeps the connection.',
  forbidden: 'The credential does not open this channel, or a new `auth` was of another user or organization.',
  authTimeout: 'No `auth` message within 5 s.',
  tooFast:
    'More than the channel allows: an open window, a queue that is full, messages a second, or answers that are not read. Connect again later; what was not acknowledged may be sent again, and `since` brings the events that were missed.',
  tooLarge: 'A frame over 1 MiB or 10,000 points. Over 16 MiB the connection is cut without a code.',
  internal: 'Something went wrong on our side; it has been recorded.',
  restart: 'The service restarts. Connect again, with growing pauses.',
}

/** One WebSocket, as a channel sees it. The ingress has authenticated it already. */
export interface ChannelSocket {
  /** Text is sent as it is; answers the bytes waiting in the socket's buffer after it (0: the kernel has all). */
  send(text: string): number
  /** Bytes waiting in the socket's buffer. */
  bufferedBytes(): number
  close(code: number, reason: string): void
  address: string
}

/** One open connection of a channel. None of these may throw. */
export interface ChannelConnection {
  /** A text frame, as the raw bytes of UTF-8, or a binary frame. The memory is the caller's again after the call. */
  message(data: ArrayBuffer, isBinary: boolean): void
  /** The socket's buffer has emptied (or fallen). */
  drain(): void
  /** The caller was looked up again (token renewed, role or hubs changed). */
  reauthorized(caller: Caller): void
  /** The socket is gone; called exactly once. */
  closed(): void
}

export interface Channel {
  /** Below /api/v3, such as `/ingest`. */
  path: string
  /** Credentials that may open it; another one is closed with 4403. */
  accepts: readonly CredentialKind[]
  open(socket: ChannelSocket, caller: Caller): ChannelConnection
}
