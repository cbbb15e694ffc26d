import { heldByXml } from '../../kernel/markup.ts'

const ESCAPED = /_x([0-9a-fA-F]{4})_/g

const NEEDS_CARE = /\r|_x[0-9a-fA-F]{4}_|[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/

/** Text as a cell holds it; characters that XML cannot express are left out. */
export const plainText = (text: string): string => {
  if (!NEEDS_CARE.test(text)) return text
  return heldByXml(text.replace(/_(?=x[0-9a-fA-F]{4}_)/g, '_x005F_')).replaceAll('\r', '_x000D_')
}

/** The text that a cell holds: what XML cannot express, and the line break of Windows, stands there as `_x000D_`. */
export const textOf = (held: string): string =>
  held.includes('_x')
    ? held.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : held
