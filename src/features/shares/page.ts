import { createHash } from 'node:crypto'
import { htmlText } from '../../kernel/markup.ts'
import type { Followed } from './follow.ts'
import { drawing } from './drawing.ts'
import { type Words, wordsIn } from './words.ts'

export interface Reader {
  language: string
  timeZone: string
}

const STYLE = `:root{color-scheme:light dark;--ink:#16202c;--soft:#5a6675;--ground:#f4f6f8;--card:#fff;--line:#c9d1da;--mark:#0a6cff;--goal:#c2410c}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf2;--soft:#9aa7b5;--ground:#0d1520;--card:#16202c;--line:#33404f;--mark:#6cb0ff;--goal:#ff9a62}}
*{box-sizing:border-box}body{margin:0;padding:16px;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:560px;margin:0 auto;padding:24px;background:var(--card);border-radius:8px;overflow-wrap:anywhere}
header{display:flex;gap:12px;align-items:center;color:var(--soft)}header img{max-width:96px;max-height:40px}
h1{font-size:1.4rem;margin:16px 0 0}.state{display:inline-block;margin:8px 0;font-weight:600}
dl{display:grid;grid-template-columns:auto 1fr;gap:4px 16px;margin:8px 0}dt{color:var(--soft)}dd{margin:0}
svg{width:100%;height:auto;margin:8px 0;background:var(--ground);border-radius:8px}small,p{color:var(--soft)}
.trail{fill:none;stroke:var(--mark);stroke-width:2;stroke-opacity:.5}.way{stroke:var(--line);stroke-width:2;stroke-dasharray:4 4}.here{fill:var(--mark)}.goal{fill:var(--goal)}`

/** Only the logo is loaded, no script runs, and no other site may show the page in a frame. */
export const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const REFRESH_SECONDS = 20

export const followPage = (followed: Followed, reader: Reader): string => {
  const { organization, task } = followed
  const words = wordsIn(reader.language)
  const isOver = task?.state === 'finished' || task?.state === 'cancelled'
  const logo = organization.logo === null ? '' : `<img src="${htmlText(organization.logo)}" alt="">`
  const body = [
    `<header>${logo}<span dir="auto">${htmlText(organization.name)}</span></header>`,
    task === undefined ? '' : `<h1 dir="auto">${htmlText(task.title)}</h1>`,
    task === undefined ? '' : `<p class="state">${htmlText(words.states[task.state] ?? '')}</p>`,
    factsOf(followed, words, reader),
    drawing(followed, htmlText(words.map)),
    isOver ? '' : `<small>${htmlText(words.refreshes)}</small>`,
  ]
  const refresh = isOver ? '' : `<meta http-equiv="refresh" content="${REFRESH_SECONDS}">`
  return page(reader.language, words, task?.title ?? organization.name, body.join('\n'), refresh)
}

/** The page if no share is open, or the service is busy. */
export const endedPage = (language: string, isBusy: boolean): string => {
  const words = wordsIn(language)
  const text = isBusy ? words.busy : words.endedText
  return page(language, words, words.ended, `<h1>${htmlText(words.ended)}</h1>\n<p>${htmlText(text)}</p>`, '')
}

const page = (language: string, { direction }: Words, title: string, body: string, head: string): string =>
  `<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex,nofollow">
${head}
<title>${htmlText(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`

const factsOf = ({ task, position, eta, visitsBefore }: Followed, words: Words, reader: Reader): string => {
  const time = timesFor(reader)
  const facts: [string, string][] = []
  const isOpen = task !== undefined && task.state !== 'finished' && task.state !== 'cancelled'
  if (isOpen && task.window !== undefined)
    facts.push([words.window, `${time(task.window.from)} – ${time(task.window.to)}`])
  if (eta !== undefined) {
    facts.push([words.arrival, time(eta.at)])
    facts.push([words.distance, distanceText(eta.distanceMeters, reader.language)])
  }
  if (visitsBefore !== undefined && visitsBefore > 0)
    facts.push([words.stopsBefore, new Intl.NumberFormat(reader.language).format(visitsBefore)])
  if (position !== undefined) facts.push([words.seen, time(position.recordedAt)])
  const list = facts.map(([name, value]) => `<dt>${htmlText(name)}</dt><dd>${htmlText(value)}</dd>`).join('\n')
  const none = position === undefined && (task === undefined || task.state === 'inProgress')
  return `${list === '' ? '' : `<dl>\n${list}\n</dl>`}${none ? `<p>${htmlText(words.noPosition)}</p>` : ''}`
}

const timesFor = ({ language, timeZone }: Reader): ((time: string) => string) => {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone })
  return (time) => format.format(new Date(time))
}

const distanceText = (meters: number, language: string): string => {
  const isFar = meters >= 1_000
  const value = isFar ? meters / 1_000 : meters
  const unit = isFar ? 'kilometer' : 'meter'
  const maximumFractionDigits = isFar && value < 10 ? 1 : 0
  return new Intl.NumberFormat(language, { style: 'unit', unit, maximumFractionDigits }).format(value)
}
