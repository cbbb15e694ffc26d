import { EXPORT } from '../../features/exports/views.ts'
import { FORGOTTEN_STREAMS, PASSWORD_FORGOTTEN, type PasswordForgotten } from '../../features/identity/events.ts'
import { openForgotten } from '../../features/identity/passwords/forgotten.ts'
import { newLink } from '../../features/identity/links/links.ts'
import { People } from '../../features/identity/people.ts'
import { UnverifiedMails } from '../../features/identity/links/unverified-mails.ts'
import type { Mailer, MailOutcome } from '../../engines/mailer.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type IsOurs } from '../../kit/consumers/follower.ts'

import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Services } from '../../kit/services.ts'
import { MailComposer } from './compose-mail.ts'
import { MailSender } from './mail-sender.ts'
import { exportMailsOwed } from './export-mails.ts'
import { mailsOwedFor, OWED_MAILS } from './owed-mails.ts'

/** The consumer, by its checkpoint. */
export const MAIL = 'mail'

/** Longest wait for a mail about a forgotten password: as long as its link would hold. */
const FORGOTTEN_MAX_MS = 3_600_000

export interface MailServices extends ResourceServices, Pick<Services, 'clock' | 'logger'> {
  mailer: Mailer
  publicUrl: string
  /** Whether this process is still the sender. */
  isOurs?: IsOurs
  onMail?(outcome: MailOutcome['kind'] | 'unsent'): void
}

/**
 * Facts in, mails out: each fact that concerns a reader owes a mail under an id derived from it, kept in a table with
 * the place in the log, and sent beside.
 */
export const sendMails = async (services: MailServices) => {
  const { tables, clock, onMail: count } = services
  await tables.declare(OWED_MAILS)
  const people = new People(services)
  const unverified = new UnverifiedMails(services)
  const composer = new MailComposer(services, services.publicUrl)
  const sender = new MailSender({ ...services, composer, unverified, ...(count && { count }) })
  const follower = new Follower(services, {
    name: MAIL,
    source: { prefixes: ['identity-', FORGOTTEN_STREAMS, EXPORT.prefix] },
    handle: async ({ events }) => {
      const now = clock.now()
      for (const event of events)
        if (event.type === PASSWORD_FORGOTTEN) await issueReset(services, people, unverified, event)
      const exported = await Promise.all(events.map((event) => exportMailsOwed(services.log, event, now)))
      const changes = [...events.flatMap((event) => mailsOwedFor(event, now)), ...exported.flat()]
      if (changes.length === 0) return undefined
      await tables.commit(changes)
      sender.look()
      return []
    },
  }).start(tables)
  return {
    follower,
    close: async (): Promise<void> => {
      await follower.close()
      await sender.close()
    },
  }
}

/**
 * The request was answered before it was known whether such an identity exists. A link that would not be mailed is not
 * issued: it would end the previous one.
 */
const issueReset = async (
  services: MailServices,
  people: People,
  unverified: UnverifiedMails,
  event: RecordedEvent,
): Promise<void> => {
  const now = services.clock.now()
  if (event.loggedAt + FORGOTTEN_MAX_MS <= now) return
  const email = openForgotten(services.keyring, decodeJson<PasswordForgotten>(event.data))
  const person = await people.findByEmail(email)
  if (person === undefined) return
  const { state } = person
  const linkId = idFrom('reset', event.id)
  const isIssued = state.links.some((link) => link.linkId === linkId)
  if (!isIssued && (await unverified.count(state.email, 'reset')) !== undefined) return
  const link = newLink({ linkId, kind: 'reset', email: state.email, isCounted: true }, event.loggedAt)
  const ids = { next: () => idFrom('resetIssued', event.id) }
  const metadata = { ...event.metadata, actor: 'reactor:mail', $causationId: event.id }
  await people.command(person.identityId, { type: 'issueLink', link, at: link.at }, { ids, metadata })
}
