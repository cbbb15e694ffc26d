const DIGITS = /[٠-٩۰-۹]/g
const SIGNS: { [sign: string]: string } = { '٫': '.', '٬': ',', '،': ',' }

/** A text with Arabic or Persian digits, and their signs, in those of Europe; another one as it is. */
export const westernDigits = (text: string): string => {
  if (text.search(DIGITS) < 0) return text
  // The last four bits of each are its value.
  return text.replace(DIGITS, (digit) => String(digit.charCodeAt(0) & 15)).replace(/[٫٬،]/g, (sign) => SIGNS[sign])
}
