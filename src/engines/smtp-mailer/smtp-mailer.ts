import { Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import type { Clock } from '../../kernel/clock.ts'
import { isRecipient } from '../../kernel/recipient.ts'
import type { Mail, Mailer, MailOutcome } from '../mailer.ts'

export interface SmtpOptions {
  /** `smtp://[user:password@]host[:port]` (TLS as soon as the server offers it, and always before a password) or `smtps://…`. */
  url: string
  from: string
  clock: Clock
  /** For one mail from connecting to the server's answer. */
  deadlineMs?: number
  /** Certificates to trust beside the system's. */
  ca?: string
}

const DEADLINE_MS = 30_000

export const openSmtpMailer = ({ url, from, clock, ca, deadlineMs = DEADLINE_MS }: SmtpOptions): Mailer => {
  const { protocol, hostname, port, username, password } = new URL(url)
  const auth = username === '' ? undefined : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  const settings = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? undefined : Number(port),
    secure: protocol === 'smtps:',
    requireTLS: auth !== undefined && protocol === 'smtp:',
    auth,
    tls: ca === undefined ? undefined : { ca },
    dnsTimeout: deadlineMs,
    connectionTimeout: deadlineMs,
    greetingTimeout: deadlineMs,
    socketTimeout: deadlineMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  const transport = createTransport(settings)
  const sending = new Set<Promise<MailOutcome>>()
  const handOver = async ({ id, to, subject, text, html, at }: Mail, signal: AbortSignal): Promise<MailOutcome> => {
    if (!isRecipient(to)) return { kind: 'refused', error: 'the recipient is no public mail address' }
    const composed = { from, to, subject, text, html, messageId: `<${id}@waymark>`, date: new Date(at), signal }
    return transport.sendMail(composed).then(() => ({ kind: 'sent' }), outcomeOf)
  }
  /** The library's own check takes no signal: it gets a socket that can be destroyed. */
  const signIn = (signal: AbortSignal): Promise<MailOutcome> => {
    const socket = new Socket()
    signal.addEventListener('abort', () => socket.destroy())
    const checked = createTransport({ ...settings, socket }).verify()
    return checked.then(() => ({ kind: 'sent' as const }), outcomeOf).finally(() => socket.destroySoon())
  }
  /** The timeouts of the connection are for silence: a server that says a little now and then would hold on for ever. */
  const withinDeadline = (work: (signal: AbortSignal) => Promise<MailOutcome>): Promise<MailOutcome> =>
    new Promise((resolve) => {
      const end = new AbortController()
      const cancel = clock.after(deadlineMs, () => {
        resolve({ kind: 'failed', error: `no answer in ${deadlineMs} ms` })
        // The connection goes, too: a server that took the mail now would get it twice.
        end.abort()
      })
      void work(end.signal).then(resolve).finally(cancel)
    })
  return {
    send: (mail) => {
      const outcome = withinDeadline((signal) => handOver(mail, signal))
      sending.add(outcome)
      void outcome.then(() => sending.delete(outcome))
      return outcome
    },
    check: async () => {
      const outcome = await withinDeadline(signIn)
      if (outcome.kind !== 'sent') throw new Error(outcome.error)
    },
    close: async () => {
      await Promise.all(sending)
      transport.close()
    },
  }
}

interface SmtpError extends Error {
  code?: string
  /** Code of the server's answer, such as 550. */
  responseCode?: number
  /** Command that the server answered. */
  command?: string
}

/** The server's words may repeat the recipient: they are left out. A refused sender or password is the operator's. */
const outcomeOf = ({ code = 'error', responseCode, command }: SmtpError): MailOutcome => {
  const isAboutMail = code === 'EENVELOPE' || code === 'EMESSAGE'
  const isForGood = isAboutMail && (responseCode ?? 0) >= 500 && command !== 'MAIL FROM'
  const error = [code, command, responseCode].filter((part) => part !== undefined).join(' ')
  return { kind: isForGood ? 'refused' : 'failed', error }
}
