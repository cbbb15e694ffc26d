export interface Mail {
  /** The same at each attempt; it makes the `Message-ID`, by which recipients recognize duplicates. */
  id: string
  /** One address that `isRecipient` passes; any other is refused. */
  to: string
  subject: string
  text: string
  html: string
  /** Time of its cause, ms since the epoch; the same at each attempt. */
  at: number
}

/** `error` is one short sentence without secrets and without the recipient. */
export type MailOutcome =
  | { kind: 'sent' }
  /** Permanent: the same mail would be refused again. */
  | { kind: 'refused'; error: string }
  /** Temporary: worth another attempt. */
  | { kind: 'failed'; error: string }

/**
 * Sends mail. Promises of every engine (test/contracts/mailer.ts):
 * - Always resolves, at the latest when its deadline is over; `sent` means that the mail server has taken the mail for
 *   good.
 * - One mail goes to one recipient, whatever its fields contain.
 * - The same mail sent again carries the same `Message-ID`.
 */
export interface Mailer {
  send(mail: Mail): Promise<MailOutcome>
  /** Checks whether mail could be handed over; sends none. @throws Error that names the fault, without secrets */
  check(): Promise<void>
  /** Waits for work under way. */
  close(): Promise<void>
}
