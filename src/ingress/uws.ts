import './request-head.ts'
import { createRequire } from 'node:module'
import type * as Server from 'uWebSockets.js'

/** Node 22's: the last one for which the package with the widest reach (glibc 2.27) has a binary. */
const LAST_MODULES_OF_OLD_GLIBC = 127

/**
 * The server library. Its author has no package on npm: where there is one whose binary was found to be the author's,
 * that is installed; elsewhere one of two that carry binaries for all systems, for Node 20 and 22 and for later Nodes.
 * docs/decisions/0016-packages-of-the-server-library.md gives the reasons, and the way to check the binaries.
 */
const load = async (): Promise<typeof Server> => {
  const [major] = process.versions.node.split('.')
  const proven = `@uwsjs/${process.platform}-${process.arch}-${major}`
  try {
    return createRequire(import.meta.url)(proven)
  } catch {
    return Number(process.versions.modules) <= LAST_MODULES_OF_OLD_GLIBC
      ? await import('uWebSockets.js')
      : ((await import('@btc-vision/uwebsockets.js')) as unknown as typeof Server)
  }
}

export const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = await load()
