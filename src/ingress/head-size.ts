import { env } from 'node:process'

// uWebSockets.js takes its limit for the head of a request (4 KiB by default: too little for a cursor, or a browser with
// cookies) from the environment, once, when it is loaded. So this module has to be imported before it.
env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(16 * 1024)
