import type { LinkKind } from '../../../features/identity/events.ts'

export type MailKind = LinkKind | 'factorRemoved' | 'export'

/** Values between braces in texts, all of it in clear. */
export interface MailView {
  organization: string
  inviter?: string
  oldEmail: string
  newEmail: string
  /** Name of the config of an export, its rows, and the day on which its link ends. */
  config?: string
  rows?: string
  until?: string
}

/** Mustache templates. */
export interface MailText {
  subject: string
  lines: readonly string[]
  /** The words of the link; absent for a mail without one. */
  button?: string
  end: string
}

export type MailTexts = { readonly [kind in MailKind]: MailText }
