import type { Caller } from '../../kernel/caller.ts'

/** Close codes of both channels. */
export const CLOSE = {
  badMessage: 4400,
  unauthenticated: 4401,
  forbidden: 4403,
  authTimeout: 4408,
  tooFast: 4429,
  tooLarge: 1009,
  restart: 1012,
} as const

/** One WebSocket, as a channel sees it. The ingress has authenticated it already. */
export interface ChannelSocket {
  /** Text is sent as it is; answers the bytes that wait in the socket's buffer after it (0: all is with the kernel). */
  send(text: string): number
  /** Bytes that wait in the socket's buffer. */
  bufferedBytes(): number
  close(code: number, reason: string): void
  /** The client's address. */
  address: string
}

/** One open connection of a channel. None of these may throw. */
export interface ChannelConnection {
  /** A text frame, as the raw bytes of UTF-8, or a binary frame. The memory is the caller's again after the call. */
  message(data: ArrayBuffer, isBinary: boolean): void
  /** The socket's buffer has emptied (or fallen). */
  drain(): void
  /** The caller was looked up anew (token renewed, role or hubs changed). */
  reauthorized(caller: Caller): void
  /** The socket is gone; called exactly once. */
  closed(): void
}

export interface Channel {
  /** Below /api/v3, such as `/ingest`. */
  path: string
  /** Which credentials may open it; another one is closed with 4403. */
  accepts: readonly Caller['kind'][]
  open(socket: ChannelSocket, caller: Caller): ChannelConnection
}
