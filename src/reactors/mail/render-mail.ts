import mustache from 'mustache'
import type { Mail } from '../../engines/mailer.ts'
import { htmlText } from '../../kernel/markup.ts'
import { ar } from './texts/ar.ts'
import { de } from './texts/de.ts'
import { en } from './texts/en.ts'
import type { MailKind, MailTexts, MailView } from './texts/mail-text.ts'
import { pl } from './texts/pl.ts'

/** Languages that mails are written in; users of another one get English. */
export const MAIL_LANGUAGES: { readonly [language: string]: MailTexts } = { en, de, pl, ar }

const LAYOUT = `<!doctype html>
<html lang="{{language}}" dir="{{direction}}">
<body style="margin:0;padding:24px;background:#f4f6f8;font:16px/1.5 system-ui,sans-serif;color:#16202c">
<div style="max-width:560px;margin:0 auto;padding:24px;background:#fff;border-radius:8px">
{{#lines}}
<p dir="auto" style="white-space:pre-line">{{.}}</p>
{{/lines}}
{{#link}}
<p><a href="{{link}}" style="display:inline-block;padding:10px 18px;border-radius:6px;background:#0d1520;color:#fff;text-decoration:none">{{button}}</a></p>
<p style="font-size:13px;word-break:break-all">{{link}}</p>
{{/link}}
<p style="color:#5a6675">{{end}}</p>
</div>
</body>
</html>
`

/** Texts for a language tag: `pl-PL` has those of `pl`. */
const textsFor = (language: string | undefined): { language: string; texts: MailTexts } => {
  const base = (language ?? 'en').toLowerCase().split('-')[0]
  return Object.hasOwn(MAIL_LANGUAGES, base)
    ? { language: base, texts: MAIL_LANGUAGES[base] }
    : { language: 'en', texts: en }
}

/** Subject, plain text and HTML, in the reader's language as far as there are texts in it. */
export const renderMail = (
  kind: MailKind,
  language: string | undefined,
  view: MailView,
  link: string | undefined,
): Pick<Mail, 'subject' | 'text' | 'html'> => {
  const known = textsFor(language)
  const text = known.texts[kind]
  const shown = Object.fromEntries(Object.entries(view).map(([name, value]) => [name, withoutLink(value)]))
  const fill = (template: string): string => mustache.render(template, shown, {}, { escape: String })
  const [subject, lines, button, end] = [fill(text.subject), text.lines.map(fill), text.button, fill(text.end)]
  return {
    subject,
    text: `${[...lines, link, end].filter((line) => line !== undefined).join('\n\n')}\n`,
    html: htmlOf({ language: known.language, lines, link, button, end }),
  }
}

/**
 * The paragraphs of a mail as HTML; all of it is plain text and escaped. Mustache's own escape would write the slashes of
 * links as entities too, and then they cannot be copied out of a file.
 */
export const htmlOf = (view: {
  language: string
  lines: readonly string[]
  link?: string
  button?: string
  end: string
}): string => mustache.render(LAYOUT, { ...view, direction: directionOf(view.language) }, {}, { escape: htmlText })

const RIGHT_TO_LEFT = ['ar', 'fa', 'he', 'ur']

const directionOf = (language: string): 'ltr' | 'rtl' =>
  RIGHT_TO_LEFT.includes(language.toLowerCase().split('-')[0]) ? 'rtl' : 'ltr'

/** Mail programs turn anything like a link into one: nobody may mail their own under our name. */
const withoutLink = (value: string | undefined): string | undefined =>
  value === undefined || (!/:\/\/|www\./i.test(value) && !/\w\.\w+\//.test(value))
    ? value
    : value.replace(/[:/.]+/g, ' ')
