import { createHash } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { ConfigError } from '../config-values.ts'
import type { ControlRequest } from '../operations/control.ts'

export interface ControlAnswer {
  ok: boolean
  /** The outcome, or the reason why there is none. */
  report?: unknown
  error?: string
}

const LINE_BYTES_MAX = 64 * 1024

/** The system silently truncates paths of sockets after 103 to 107 bytes. */
const SOCKET_PATH_BYTES_MAX = 100

const pathOf = (dataPath: string): string => {
  const path = join(resolve(dataPath), 'control.sock')
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return path
  return join(tmpdir(), `waymark-${createHash('sha256').update(path).digest('hex').slice(0, 32)}.sock`)
}

/** Serves the process owner, one line of JSON each. The data folder is locked, so a leftover socket may go. */
export const serveControl = async (
  dataPath: string,
  answer: (request: ControlRequest) => Promise<unknown>,
): Promise<Server> => {
  rmSync(pathOf(dataPath), { force: true })
  const server = createServer((socket) => serveOne(socket, answer))
  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    server.listen(pathOf(dataPath), done)
  })
  chmodSync(pathOf(dataPath), 0o600)
  server.unref()
  return server
}

/** Asks the server that runs on this data folder; undefined if none does. Without a deadline it waits indefinitely. */
export const askControl = (
  dataPath: string,
  request: ControlRequest,
  deadlineMs?: number,
): Promise<ControlAnswer | undefined> =>
  new Promise((done, failed) => {
    const socket = createConnection(pathOf(dataPath))
    if (deadlineMs !== undefined)
      socket.setTimeout(deadlineMs, () => {
        socket.destroy()
        done({ ok: false, error: `no answer within ${deadlineMs / 1000} s` })
      })
    socket.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' || error.code === 'ECONNREFUSED' ? done(undefined) : failed(error),
    )
    socket.once('connect', () => socket.write(`${JSON.stringify(request)}\n`))
    firstLine(socket, (line) => {
      socket.destroy()
      done(JSON.parse(line) as ControlAnswer)
    })
    socket.once('close', () => done({ ok: false, error: 'the server ended the connection' }))
  })

/** Report of the server that must run on this data folder. @throws ConfigError if none does, or with its refusal */
export const askRunning = async (dataPath: string, request: ControlRequest): Promise<unknown> => {
  const answer = await askControl(dataPath, request)
  if (answer === undefined) throw new ConfigError(`no service runs on ${dataPath}; start it first`)
  if (!answer.ok) throw new ConfigError(answer.error ?? 'it refused')
  return answer.report
}

const serveOne = (socket: Socket, answer: (request: ControlRequest) => Promise<unknown>): void => {
  let received = 0
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    received += chunk.length
    if (received > LINE_BYTES_MAX) socket.destroy()
  })
  firstLine(socket, async (line) => {
    socket.end(`${JSON.stringify(await answerLine(line, answer))}\n`)
  })
}

/** A line reader re-emits errors of its input, which would end the process without a listener. */
const firstLine = (socket: Socket, take: (line: string) => void): void => {
  const lines = createInterface({ input: socket })
  lines.once('line', take)
  lines.on('error', () => socket.destroy())
}

const answerLine = async (
  line: string,
  answer: (request: ControlRequest) => Promise<unknown>,
): Promise<ControlAnswer> => {
  try {
    return { ok: true, report: await answer(JSON.parse(line) as ControlRequest) }
  } catch (error) {
    return { ok: false, error: (error as Error).message }
  }
}
