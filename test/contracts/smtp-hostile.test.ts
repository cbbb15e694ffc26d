import { createServer, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { openSmtpMailer } from '../../src/engines/smtp-mailer/smtp-mailer.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { until } from '../support/service.ts'
import { MAIL } from './mailer.ts'

const CONNECTED = 'CONNECTED'

/** How a server answers a line of its client, and the connection itself. */
type Answer = (socket: Socket, line: string) => void

/** A server that talks as `answer` says, and a mailer that gives it half a second. */
const openHostile = async (t: Test, answer: Answer, deadlineMs = 500) => {
  const open = new Set<Socket>()
  const lines: string[] = []
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().split('\r\n').slice(0, -1)) {
        lines.push(line)
        answer(socket, line)
      }
    })
    answer(socket, CONNECTED)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    return new Promise((done) => server.close(done))
  })
  const { port } = server.address() as { port: number }
  const url = `smtp://127.0.0.1:${port}`
  const mailer = openSmtpMailer({ url, from: 'waymark@example.com', clock: systemClock, deadlineMs })
  return { mailer, open, lines }
}

/** An ordinary server, up to the command that begins so. */
const honestUntil =
  (begin: string, then: (socket: Socket) => void, capabilities: readonly string[] = ['8BITMIME']): Answer =>
  (socket, line) => {
    if (line.split(' ')[0] === begin) return then(socket)
    if (line === CONNECTED) socket.write('220 here\r\n')
    else if (line.startsWith('EHLO'))
      socket.write([...capabilities.map((one) => `250-${one}\r\n`), '250 OK\r\n'].join(''))
    else if (line === 'DATA') socket.write('354 go on\r\n')
    else if (/^(MAIL|RCPT)/.test(line) || line === '.') socket.write('250 OK\r\n')
  }

/** Says a text byte by byte, and its last byte for ever. */
const drip =
  (text: string) =>
  (socket: Socket): void => {
    let at = 0
    const timer = setInterval(() => socket.write(text[Math.min(at++, text.length - 1)]), 10)
    socket.on('close', () => clearInterval(timer))
  }

const flood =
  (piece: string, sent: { bytes: number }) =>
  (socket: Socket): void => {
    const write = (): void => {
      do sent.bytes += piece.length
      while (!socket.destroyed && socket.write(piece))
    }
    socket.on('drain', write)
    write()
  }

const silent = (): void => undefined

test('a server that stalls at any step is given up, and its connection with it', { timeout: 300_000 }, async (t) => {
  const steps = [CONNECTED, 'EHLO', 'MAIL', 'RCPT', 'DATA', '.']
  for (const begin of steps)
    for (const [name, then] of [
      ['says nothing', silent],
      ['drips a line that never ends', drip('250 OK but wait ')],
      ['drips lines that go on', drip('250-OK\r\n250-'.repeat(50))],
      ['drips what is no answer', drip('\r\n'.repeat(500))],
    ] as const) {
      const { mailer, open } = await openHostile(t, honestUntil(begin, then))
      const outcome = await mailer.send(MAIL)
      t.match(outcome, { kind: 'failed', error: String }, `${begin}: ${name}`)
      t.notMatch(JSON.stringify(outcome), 'ada@example.com')
      await until('the connection to close', () => open.size === 0)
    }
})

test('an answer that does not end is cut off', { timeout: 300_000 }, async (t) => {
  const pieces = { 'one line': '2'.repeat(65_536), 'one answer': '250-more\r\n'.repeat(6_000) }
  for (const begin of [CONNECTED, 'EHLO', 'DATA', '.'])
    for (const [name, piece] of Object.entries(pieces)) {
      const sent = { bytes: 0 }
      const { mailer, open } = await openHostile(t, honestUntil(begin, flood(piece, sent)), 60_000)
      t.match(await mailer.send(MAIL), { kind: 'failed', error: 'EPROTOCOL CONN' }, `${begin}: ${name}`)
      await until('the connection to close', () => open.size === 0)
      // What lies in the buffers of both ends is told as sent.
      t.ok(sent.bytes < 32 * 1024 * 1024, `${sent.bytes} bytes`)
    }
})

test('a server that offers TLS and breaks it gets no mail in clear', { timeout: 300_000 }, async (t) => {
  const ways: { [name: string]: (socket: Socket) => void } = {
    'refuses it': (socket) => socket.write('454 not now\r\n'),
    closes: (socket) => socket.end('220 go on\r\n'),
    'says nothing more': (socket) => socket.write('220 go on\r\n'),
    'talks in clear': (socket) => socket.write('220 go on\r\n250 OK\r\n250 OK\r\n250 OK\r\n'),
    'talks nonsense': (socket) => void socket.write('220 go on\r\n', () => socket.write(Buffer.alloc(4_096, 7))),
  }
  for (const [name, then] of Object.entries(ways)) {
    const { mailer, open, lines } = await openHostile(t, honestUntil('STARTTLS', then, ['STARTTLS']))
    t.match(await mailer.send(MAIL), { kind: 'failed' }, name)
    t.notOk(
      lines.some((line) => line.includes('ada@example.com')),
      name,
    )
    await until('the connection to close', () => open.size === 0)
  }
})

test('a check ends with its deadline, and its connection with it', { timeout: 300_000 }, async (t) => {
  for (const begin of [CONNECTED, 'EHLO', 'QUIT'])
    for (const then of [silent, drip('250-OK\r\n250-'.repeat(50))]) {
      const { mailer, open } = await openHostile(t, honestUntil(begin, then))
      const checked = mailer.check()
      await (begin === 'QUIT' ? checked : t.rejects(checked, { message: /no answer in 500 ms|ETIMEDOUT/ }, begin))
      await until('the connection to close', () => open.size === 0)
    }
})
