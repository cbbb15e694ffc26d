import './request-head.ts'
import type * as Server from 'uWebSockets.js'

/** Of Node 22: the last one that the package with the widest reach (glibc 2.27) has a binary for. */
const LAST_MODULES_OF_OLD_GLIBC = 127

/**
 * The server library. Two packages on npm carry binaries of it: one for Node 20 and 22 on any glibc from 2.27 on, one
 * for later Nodes, which needs glibc 2.38. docs/decisions/0016-two-packages-of-the-server-library.md says why both are here, and how to check their binaries.
 */
const uws =
  Number(process.versions.modules) <= LAST_MODULES_OF_OLD_GLIBC
    ? await import('uWebSockets.js')
    : ((await import('@btc-vision/uwebsockets.js')) as unknown as typeof Server)

export const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = uws
