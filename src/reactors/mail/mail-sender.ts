import { WrongRevision } from '../../engines/event-log.ts'
import type { UnverifiedMails } from '../../features/identity/links/unverified-mails.ts'
import type { Mailer, MailOutcome } from '../../engines/mailer.ts'
import { encodeJson } from '../../kernel/event.ts'
import { NO_ORGANIZATION, type RowChange } from '../../kernel/table.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import type { IsOurs } from '../../kit/consumers/follower.ts'
import { forever, pause } from '../../kit/consumers/retry.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Services } from '../../kit/services.ts'
import type { MailComposer } from './compose-mail.ts'
import { MAIL_ENDED, type MailEnded, mailStream, OWED_MAILS, owed, type OwedMailRow } from './owed-mails.ts'

const SECOND_MS = 1_000
/** Pauses after failed attempts; after the last one the mail is given up. */
export const MAIL_RETRY_MS = [10, 60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600, 24 * 3_600].map(
  (s) => s * SECOND_MS,
)
/** Time between looks for due mails, also without a signal. */
const LOOK_MS = SECOND_MS
const AT_ONCE = 4
const TOO_MANY: MailOutcome = {
  kind: 'refused',
  error: 'nobody has confirmed the address, and it had its mails of the day',
}
const PAGE_ROWS = 100

export interface MailSenderServices extends Pick<Services, 'log' | 'tables' | 'clock' | 'logger'> {
  mailer: Mailer
  composer: Pick<MailComposer, 'compose'>
  unverified: Pick<UnverifiedMails, 'count'>
  isOurs?: IsOurs
  count?(outcome: MailOutcome['kind'] | 'unsent'): void
}

/** Sends owed mails, each once, as long as an attempt is left. */
export class MailSender {
  private readonly services: MailSenderServices
  private readonly end = new AbortController()
  private wake = new AbortController()
  private readonly running: Promise<void>

  constructor(services: MailSenderServices) {
    this.services = services
    const { clock, logger } = services
    const onFailure = (error: unknown): void => logger.error('mails cannot be sent', { error: String(error) })
    this.running = forever((progressed) => this.run(progressed), { clock, signal: this.end.signal, onFailure })
  }

  /** Called when a new mail is owed. */
  look(): void {
    this.wake.abort()
  }

  async close(): Promise<void> {
    this.end.abort()
    this.wake.abort()
    await this.running
  }

  private async run(progressed: () => void): Promise<void> {
    const { clock } = this.services
    this.wake = new AbortController()
    const isOurs = (await this.services.isOurs?.()) !== false
    while (isOurs && !this.end.signal.aborted && (await this.sendDue()) === PAGE_ROWS) progressed()
    progressed()
    await pause(clock, LOOK_MS, this.wake.signal)
  }

  /** Answers the number of due mails. */
  private async sendDue(): Promise<number> {
    const { tables, clock } = this.services
    const { rows } = await tables.find<OwedMailRow>(OWED_MAILS.name, NO_ORGANIZATION, {
      range: { field: 'nextAt', to: clock.now() },
      sort: { field: 'nextAt', order: 'asc' },
      limit: PAGE_ROWS,
    })
    await severalAtOnce(rows, AT_ONCE, async ({ id, row }) => {
      if (!this.end.signal.aborted) await this.sendOne(id, row)
    })
    return rows.length
  }

  private async sendOne(id: string, row: OwedMailRow): Promise<void> {
    const { log, tables, clock, mailer, composer } = this.services
    const forget: RowChange = { table: OWED_MAILS.name, scope: NO_ORGANIZATION, id, row: null }
    const hasEnded = row.until <= clock.now() || (await log.head(mailStream(id))) >= 0
    const mail = hasEnded ? undefined : await composer.compose(id, row, clock.now())
    if (mail === undefined) return tables.commit([forget])
    const outcome = (await this.isTooMany(mail.to, row)) ? TOO_MANY : await mailer.send(mail)
    const attempts = row.attempts + 1
    const nextAt = clock.now() + (MAIL_RETRY_MS[row.attempts] ?? Number.POSITIVE_INFINITY)
    const isRetried = outcome.kind === 'failed' && nextAt < row.until
    this.note(id, outcome, attempts, isRetried)
    if (isRetried) return tables.commit([owed(id, { ...row, attempts, nextAt })])
    await this.noteEnd(id, outcome, attempts)
    await tables.commit([forget])
  }

  /** Counted at the first attempt, unless it was counted at the request. */
  private async isTooMany(to: string, { attempts, isCounted = false, subject }: OwedMailRow): Promise<boolean> {
    if (attempts > 0 || isCounted) return false
    return (await this.services.unverified.count(to, subject)) !== undefined
  }

  private async noteEnd(id: string, outcome: MailOutcome, attempts: number): Promise<void> {
    const { log, clock } = this.services
    const kind = outcome.kind === 'failed' ? 'unsent' : outcome.kind
    const error = outcome.kind === 'sent' ? {} : { error: outcome.error }
    const data: MailEnded = { outcome: kind, attempts, ...error, at: formatTime(clock.now()) }
    const metadata = { actor: 'reactor:mail' }
    const event = { id: idFrom(MAIL_ENDED, id), type: MAIL_ENDED, data: encodeJson(data), isJson: true, metadata }
    await log.append(mailStream(id), [event], 'none').catch((other: unknown) => {
      if (!(other instanceof WrongRevision)) throw other
    })
  }

  /** The mail's id leads to the fact, so neither address nor text needs to be in the log of the process. */
  private note(mail: string, outcome: MailOutcome, attempts: number, isRetried: boolean): void {
    const { logger, count } = this.services
    count?.(outcome.kind === 'failed' && !isRetried ? 'unsent' : outcome.kind)
    if (outcome.kind === 'sent') return logger.debug('a mail was sent', { mail, attempts })
    const { error } = outcome
    if (isRetried) logger.warn('a mail could not be sent yet', { mail, attempts, error })
    else logger.error('a mail was not sent', { mail, attempts, error })
  }
}
