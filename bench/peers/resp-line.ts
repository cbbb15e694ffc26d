import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const CR_LF = '\r\n'

/** A command of Redis' protocol, as bytes of text. */
export const command = (...words: readonly (string | number)[]): string =>
  `*${words.length}${CR_LF}${words.map((word) => `$${Buffer.byteLength(String(word))}${CR_LF}${word}${CR_LF}`).join('')}`

interface Waiting {
  replies: number
  done: () => void
  failed: (error: Error) => void
}

/**
 * A connection that counts replies in place of reading them (https://redis.io/docs/latest/develop/reference/protocol-spec/):
 * a client with a promise for each command would be measured instead of the server. Replies that are arrays are not counted right.
 */
export class RespLine {
  private rest = ''
  private readonly waiting: Waiting[] = []
  private readonly socket: Socket

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', (text) => this.take(String(text)))
    socket.on('close', () => {
      for (const { failed } of this.waiting.splice(0)) failed(new Error('the connection was closed'))
    })
    socket.on('error', () => undefined) // followed by `close`
  }

  static async open(host: string, port: number): Promise<RespLine> {
    const socket = connect(port, host)
    await once(socket, 'connect')
    return new RespLine(socket)
  }

  /** Resolves once as many replies have come. */
  send(commands: string, replies: number): Promise<void> {
    this.socket.write(commands)
    return new Promise((done, failed) => this.waiting.push({ replies, done, failed }))
  }

  async close(): Promise<void> {
    if (this.socket.destroyed) return
    this.socket.destroy()
    await once(this.socket, 'close')
  }

  private take(text: string): void {
    this.rest += text
    let at = 0
    for (;;) {
      const end = this.rest.indexOf(CR_LF, at)
      if (end < 0) break
      const line = this.rest.slice(at, end)
      // A bulk string has its bytes and another end of line behind the line with its length.
      const next = line.startsWith('$') && line !== '$-1' ? end + 2 + Number(line.slice(1)) + 2 : end + 2
      if (next > this.rest.length) break
      at = next
      this.count(line)
    }
    this.rest = this.rest.slice(at)
  }

  private count(line: string): void {
    const [first] = this.waiting
    if (first === undefined) return
    if (line.startsWith('-')) {
      first.failed(new Error(line.slice(1)))
      this.socket.destroy()
      return
    }
    if (--first.replies > 0) return
    this.waiting.shift()
    first.done()
  }
}
