import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** Browsers refuse some lower ones. */
const FIRST = 11_000
const TRIES = 500

/** Ports from here on the kernel gives to whoever asks for any port, and to the near end of every connection. */
const givenFrom = (): number => {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t')[0])
  } catch {
    return 32_768
  }
}

/** The UDP port of a number: whoever holds it has the TCP port of that number for the tests, until the process ends. */
const claims: Socket[] = []

const claim = async (port: number, address = '127.0.0.1'): Promise<boolean> => {
  const socket = createSocket('udp4')
  try {
    socket.bind(port, address)
    await once(socket, 'listening')
  } catch {
    return false
  }
  claims.push(socket.unref())
  return true
}

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/**
 * A port for a server that has to know it before it begins, or comes back to it. Nobody else gets it meanwhile: neither the
 * kernel nor another test of this machine gives it away.
 */
export const freePort = async (): Promise<number> => {
  const count = Math.max(1_000, givenFrom() - FIRST)
  for (let i = 0; i < TRIES; i++) {
    const port = FIRST + Math.floor(Math.random() * count)
    if ((await claim(port)) && (await isFree(port))) return port
  }
  throw new Error(`none of ${TRIES} ports is free`)
}

/** Below all that `freePort` gives. */
const DATAGRAMS_FIRST = 8_000

/** The same for a server of datagrams and connections: the UDP port is free, and held for the tests at another address. */
export const freeDatagramPort = async (): Promise<number> => {
  for (let i = 0; i < TRIES; i++) {
    const port = DATAGRAMS_FIRST + Math.floor(Math.random() * (FIRST - DATAGRAMS_FIRST))
    if ((await claim(port, '127.0.0.2')) && (await isFreeOfDatagrams(port)) && (await isFree(port))) return port
  }
  throw new Error(`none of ${TRIES} ports is free`)
}

const isFreeOfDatagrams = async (port: number): Promise<boolean> => {
  const socket = createSocket('udp4')
  const isFree = await new Promise<boolean>((found) => {
    socket.once('error', () => found(false))
    socket.bind(port, '127.0.0.1', () => found(true))
  })
  await new Promise<void>((closed) => socket.close(() => closed()))
  return isFree
}
