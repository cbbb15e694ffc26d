export interface Mail {
  /** The same at each attempt; it makes the `Message-ID`, by which recipients recognize duplicates. */
  id: string
  /** One address that `isRecipient` passes; any other is refused. */
  to: string
  subject: string
  text: string
  html: string
  /** When its reason came up, ms since the epoch; the same at each attempt. */
  at: number
}

/** `error` is one short sentence without secrets and without the recipient. */
export type MailOutcome =
  | { kind: 'sent' }
  /** For good: the same mail would be refused again. */
  | { kind: 'refused'; error: string }
  /** For now: worth another attempt. */
  | { kind: 'failed'; error: string }

/**
 * Sends mail. Promises of every engine (test/contracts/mailer.ts):
 * - Resolves for whatever happens, at the latest when its deadline is over; `sent` means that the mail server has taken
 *   the mail for good.
 * - One mail goes to one recipient, whatever stands in its fields.
 * - The same mail sent again carries the same `Message-ID`.
 */
export interface Mailer {
  send(mail: Mail): Promise<MailOutcome>
  /** Checks whether mail could be handed over; sends none. @throws Error that says what is wrong, without secrets */
  check(): Promise<void>
  /** Lets what is under way end. */
  close(): Promise<void>
}
