import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ReadMail {
  /** Lower-cased names. */
  headers: { [name: string]: string }
  text: string
  html: string
}

/** A message of two alternatives, as mail programs read it. */
export const readMail = (source: string): ReadMail => {
  const { headers, body } = partOf(source.replaceAll('\r\n', '\n'))
  const boundary = /boundary="?([^";]+)"?/.exec(headers['content-type'] ?? '')?.[1] ?? ''
  const parts = body
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => partOf(part.replace(/^\n/, '')))
  const contentOf = (type: string): string => {
    const part = parts.find((one) => one.headers['content-type']?.startsWith(type))
    return part === undefined ? '' : decoded(part)
  }
  return { headers, text: contentOf('text/plain'), html: contentOf('text/html') }
}

/** The mails of a folder, oldest first. */
export const mailsIn = (folder: string): ReadMail[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .map((name) => readMail(readFileSync(join(folder, name), 'utf8')))

/** The secret of the link of a mail. */
export const tokenIn = ({ text }: ReadMail): string => /[?&]token=([\w.-]+)/.exec(text)?.[1] ?? ''

interface Part {
  headers: { [name: string]: string }
  body: string
}

const partOf = (source: string): Part => {
  const end = source.indexOf('\n\n')
  const lines = source
    .slice(0, end)
    .replace(/\n[ \t]+/g, ' ')
    .split('\n')
  const headers = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    decodedWords(line.slice(line.indexOf(':') + 1).trim()),
  ])
  return { headers: Object.fromEntries(headers), body: source.slice(end + 2) }
}

const decodedWords = (value: string): string =>
  value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, kind: string, text: string) =>
      kind.toLowerCase() === 'b' ? Buffer.from(text, 'base64').toString() : quotedPrintable(text.replaceAll('_', ' ')),
    )

const decoded = ({ headers, body }: Part): string => {
  const encoding = headers['content-transfer-encoding']
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  return encoding === 'quoted-printable' ? quotedPrintable(body) : body
}

const quotedPrintable = (text: string): string =>
  Buffer.from(
    text
      .replace(/=\n/g, '')
      .replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()
