import type { JsonObject } from '../../../kernel/json.ts'

/*
 * Formats of incoming webhooks of chats: Slack `{text}` in its mrkdwn (api.slack.com/messaging/webhooks), Mattermost
 * and those after it `{text}` in Markdown (developers.mattermost.com/integrate/webhooks/incoming), Microsoft Teams an
 * Adaptive Card in a message (the workflow "post to a channel when a webhook request is received", and its connectors).
 */

export type ChatForm = 'slack' | 'teams' | 'mattermost'

/** Teams takes 28 KB of JSON, the others more. */
export const CHAT_CHARS_MAX = 4_000

const SLACK_HOSTS = ['slack.com', 'slack-gov.com']
const TEAMS_HOSTS = ['webhook.office.com', 'logic.azure.com', 'api.powerplatform.com', 'powerautomate.com']

/** The form for the host of a url; an unknown one takes Mattermost's, as most do. */
export const chatFormOf = (url: string): ChatForm => {
  const host = new URL(url).hostname
  const isOf = (domains: readonly string[]): boolean =>
    domains.some((domain) => host === domain || host.endsWith(`.${domain}`))
  if (isOf(SLACK_HOSTS)) return 'slack'
  return isOf(TEAMS_HOSTS) ? 'teams' : 'mattermost'
}

/** Makes a value plain text in the form: it neither formats, nor links, nor mentions anybody. */
export const chatEscape = (form: ChatForm): ((value: string) => string) => {
  if (form === 'teams') return String
  return (value) => {
    const entities = value.replace(/[&<>]/g, (character) => ENTITIES[character])
    if (form === 'slack') return entities
    // A zero-width space breaks up `@all`; Markdown's own characters are escaped.
    return entities.replace(/[\\`*_[\]()~|#]/g, '\\$&').replace(/@/g, '@\u200b')
  }
}

const ENTITIES: { [character: string]: string } = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** The body of the request. Subject and text have their values escaped for the form. */
export const chatBody = (form: ChatForm, subject: string | undefined, text: string): JsonObject => {
  if (form === 'teams') return teamsBody(subject, text)
  const mark = form === 'slack' ? '*' : '**'
  return { text: subject === undefined ? text : `${mark}${subject}${mark}\n${text}` }
}

/** Rich text, without Markdown; one block for each line. */
const teamsBody = (subject: string | undefined, text: string): JsonObject => {
  const line = (content: string, weight?: string): JsonObject => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: content, ...(weight !== undefined && { weight }) }],
  })
  const lines = text.split('\n').filter((one) => one.trim() !== '')
  const body = [...(subject === undefined ? [] : [line(subject, 'Bolder')]), ...lines.map((one) => line(one))]
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body,
        },
      },
    ],
  }
}

/** Teams' connectors answer 200 also where they did not deliver. */
export const isRefusedBy = (form: ChatForm, answer: string): boolean =>
  form === 'teams' && answer.startsWith('Webhook message delivery failed')
