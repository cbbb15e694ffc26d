import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'tap'
import { openSmtpMailer, type SmtpOptions } from '../../src/engines/smtp-mailer/smtp-mailer.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { folderOf } from '../support/folder-of.ts'
import { startSmtp } from '../support/smtp.ts'
import { MAIL, mailerContract } from './mailer.ts'

const mailerTo = (url: string, options: Partial<SmtpOptions> = {}) =>
  openSmtpMailer({ url, from: 'Waymark <waymark@example.com>', clock: systemClock, ...options })

const PLAIN = { disabledCommands: ['STARTTLS', 'AUTH'] }

mailerContract('smtp', async (t) => {
  const { sources, port } = await startSmtp(t, PLAIN)
  return { mailer: mailerTo(`smtp://127.0.0.1:${port}`), taken: () => sources }
})

test('a recipient or a content that is refused for good, and what may work later', async (t) => {
  const refusing = (responseCode: number) => Object.assign(new Error('no such ada@example.com'), { responseCode })
  let code = 550
  const { port, sources } = await startSmtp(t, {
    ...PLAIN,
    onRcptTo: (_address, _session, callback) => callback(code === 0 ? undefined : refusing(code)),
  })
  const mailer = mailerTo(`smtp://127.0.0.1:${port}`)
  t.match(await mailer.send(MAIL), { kind: 'refused', error: 'EENVELOPE RCPT TO 550' })
  code = 451
  t.match(await mailer.send(MAIL), { kind: 'failed', error: 'EENVELOPE RCPT TO 451' })
  code = 0
  t.same(await mailer.send(MAIL), { kind: 'sent' })
  t.equal(sources.length, 1)

  for (const [responseCode, kind] of [
    [554, 'refused'],
    [452, 'failed'],
  ] as const) {
    const { port: picky } = await startSmtp(t, {
      ...PLAIN,
      onData: (stream, _session, callback) => {
        stream.resume()
        stream.on('end', () => callback(refusing(responseCode)))
      },
    })
    t.match(await mailerTo(`smtp://127.0.0.1:${picky}`).send(MAIL), { kind, error: new RegExp(`${responseCode}$`) })
  }
  const { port: strange } = await startSmtp(t, {
    ...PLAIN,
    onMailFrom: (_address, _session, callback) => callback(refusing(550)),
  })
  const outcome = await mailerTo(`smtp://127.0.0.1:${strange}`).send(MAIL)
  t.match(outcome, { kind: 'failed' }, 'a sender that is refused is the operator to mend')
  t.notMatch(JSON.stringify(outcome), 'ada@example.com')
})

test('a server that is not there, hangs, or drips fails within the deadline', { timeout: 900_000 }, async (t) => {
  const silent = createServer(() => undefined)
  const dripping = createServer((socket) => {
    const timer = setInterval(() => socket.write('220-wait\r\n'), 20)
    socket.on('error', () => undefined).on('close', () => clearInterval(timer))
  })
  for (const server of [silent, dripping]) {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const sockets = new Set<import('node:net').Socket>()
    server.on('connection', (socket) => sockets.add(socket))
    t.teardown(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const { port } = server.address() as { port: number }
    t.match(await mailerTo(`smtp://127.0.0.1:${port}`, { deadlineMs: 200 }).send(MAIL), { kind: 'failed' })
  }
  const { port, server } = await startSmtp(t, PLAIN)
  await new Promise<void>((done) => server.close(() => done()))
  t.match(await mailerTo(`smtp://127.0.0.1:${port}`).send(MAIL), { kind: 'failed', error: /^ESOCKET|ECONN/ })
})

test('a password goes over TLS alone, to a server whose certificate is trusted', { timeout: 900_000 }, async (t) => {
  const files = makeCertificate(folderOf(t))
  if (files === undefined) return t.comment('SKIPPED: there is no openssl to make a certificate with')
  const [cert, key] = [readFileSync(files.certFile, 'utf8'), readFileSync(files.keyFile, 'utf8')]
  const logins: string[] = []
  const auth = {
    authOptional: false,
    onAuth: (
      { username, password }: { username?: string; password?: string | null },
      _session: unknown,
      callback: (error: Error | null, answer?: { user: string }) => void,
    ) => {
      logins.push(`${username} ${password}`)
      if (password === 's3cret/@') callback(null, { user: 'ada' })
      else callback(Object.assign(new Error('no'), { responseCode: 535 }))
    },
  }
  const upgrading = await startSmtp(t, { cert, key, ...auth })
  const secure = await startSmtp(t, { cert, key, secure: true, ...auth })
  const login = 'ada:s3cret%2F%40'
  for (const [url, server] of [
    [`smtp://${login}@127.0.0.1:${upgrading.port}`, upgrading],
    [`smtps://${login}@127.0.0.1:${secure.port}`, secure],
  ] as const) {
    t.same(await mailerTo(url, { ca: cert }).send(MAIL), { kind: 'sent' }, url)
    t.same(server.recipients, ['ada@example.com'])
    logins.length = 0
    t.match(await mailerTo(url).send(MAIL), { kind: 'failed' }, 'not trusted')
    t.same(logins, [], 'the password was kept back')
    const wrong = await mailerTo(url.replace(login, 'ada:wrong'), { ca: cert }).send(MAIL)
    t.match(wrong, { kind: 'failed', error: 'EAUTH AUTH PLAIN 535' }, 'is the operator to mend, so it is tried again')
  }
  const bare = await startSmtp(t, { ...PLAIN, disabledCommands: ['STARTTLS'], allowInsecureAuth: true, ...auth })
  logins.length = 0
  t.match(await mailerTo(`smtp://${login}@127.0.0.1:${bare.port}`).send(MAIL), { kind: 'failed' })
  t.same(logins, [], 'no password in clear')
})
