import type { Test } from 'tap'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** An SMTP server on loopback that keeps what it takes. */
export const startSmtp = async (t: Test, options: SMTPServerOptions = {}) => {
  const sources: string[] = []
  const recipients: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    disableReverseLookup: true,
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        sources.push(Buffer.concat(chunks).toString())
        recipients.push(...session.envelope.rcptTo.map(({ address }) => address))
        callback()
      })
    },
    ...options,
  })
  server.on('error', () => undefined) // clients that leave in mid-talk
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => new Promise<void>((done) => server.close(() => done())))
  const { port } = server.server.address() as { port: number }
  return { sources, recipients, port, server }
}
