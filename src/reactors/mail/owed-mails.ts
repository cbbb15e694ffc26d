import { IDENTITY, type LinkIssued } from '../../features/identity/events.ts'
import type { MailSubject } from '../../features/identity/links/unverified-mails.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { NO_ORGANIZATION, type RowChange, type TableDeclaration } from '../../kernel/table.ts'
import { idFrom } from '../../kit/commands/ids.ts'

/** Mails yet to be sent, by their ids. Their content is looked up at each attempt, so none of it is stored here. */
export const OWED_MAILS: TableDeclaration = { name: 'owed-mails', version: 1, range: ['nextAt'] }

export type OwedMailRow = {
  /** Stream of the fact that owes it. */
  stream: string
  revision: number
  /** `link` brings the link to its user, `notice` informs somebody else of it. */
  part: 'link' | 'notice'
  /** Index of the address among the recipients of an export. */
  recipient?: number
  subject: MailSubject
  /** The limit was checked already. */
  isCounted?: boolean
  /** Time at which the fact was logged, and time after which the mail is useless; ms since the epoch. */
  at: number
  until: number
  attempts: number
  nextAt: number
}

/** The stream with the end of a mail, so that it is never sent again, whatever happens to the tables. */
export const mailStream = (mailId: string): string => `mail-${mailId}`

/** Event of such a stream. */
export const MAIL_ENDED = 'mailEnded'

export interface MailEnded {
  /** `unsent`: no attempt left. */
  outcome: 'sent' | 'refused' | 'unsent'
  attempts: number
  error?: string
  at: string
}

/** Mails that a fact of an identity owes, unless their time is over. */
export const mailsOwedFor = (event: RecordedEvent, now: number): RowChange[] => {
  if (event.type !== IDENTITY.linkIssued) return []
  const { kind, expiresAt, isHandedOver = false, isCounted = false } = decodeJson<LinkIssued>(event.data)
  const until = Date.parse(expiresAt)
  if (until <= now || isHandedOver) return []
  const parts = kind === 'emailChange' ? (['link', 'notice'] as const) : (['link'] as const)
  return parts.map((part) => {
    const about = part === 'link' ? { subject: kind, isCounted } : { subject: part, isCounted: false }
    return owed(idFrom('mail', event.id, part), { ...placeOf(event), part, ...about, until })
  })
}

export const owed = (
  id: string,
  row: Omit<OwedMailRow, 'attempts' | 'nextAt'> & Partial<Pick<OwedMailRow, 'attempts' | 'nextAt'>>,
): RowChange => {
  const { attempts = 0, nextAt = row.at } = row
  return { table: OWED_MAILS.name, scope: NO_ORGANIZATION, id, row: { ...row, attempts, nextAt } }
}

const placeOf = ({ stream, revision, loggedAt: at }: RecordedEvent) => ({ stream, revision, at })
