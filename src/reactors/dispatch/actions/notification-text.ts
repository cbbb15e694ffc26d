import { renderTemplate } from '../../../kit/values/template.ts'
import { rulesData } from '../event-data.ts'
import type { Work } from './action.ts'
import { CHAT_CHARS_MAX, chatBody, chatEscape, chatFormOf } from './chat-message.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { NotificationDetails } from './notification-details.ts'

const SUBJECT_CHARS_MAX = 200
const TEXT_CHARS_MAX = 10_000

export interface NotificationText {
  /** One line. */
  subject?: string
  /** Lines; never blank. */
  text: string
}

/** Subject and text of a run, as its editor may see the event, with values escaped for their place. */
export const notificationText = (
  work: Work,
  escapeValue: (value: string) => string = String,
  charsMax = TEXT_CHARS_MAX,
): NotificationText => {
  const { subject, text } = work.details as unknown as NotificationDetails
  const data = rulesData(work.run.trigger.event, work.data)
  const safe = (value: string): string => (value === work.link ? value : escapeValue(value))
  const fill = (template: string, max: number): string =>
    renderTemplate(template, data, { escape: safe, charsMax: max }).replace(UNWANTED, '')
  const filledSubject = subject === undefined ? '' : fill(subject, SUBJECT_CHARS_MAX).replace(/\s+/g, ' ').trim()
  const filled = fill(text, charsMax).trim()
  return {
    ...(filledSubject !== '' && { subject: filledSubject }),
    // Where no text of the event is left, recipients learn at least which automation it was.
    text: filled === '' ? escapeValue(work.automation.name) : filled,
  }
}

/** Control characters but tabs and line breaks, and characters that change the direction of text. */
const UNWANTED = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu

export const chatRequestBody = (work: Work, url: string): JsonObject => {
  const form = chatFormOf(url)
  const { subject, text } = notificationText(work, chatEscape(form), CHAT_CHARS_MAX)
  return chatBody(form, subject, text)
}
