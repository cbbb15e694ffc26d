const ENTITIES: { [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as content of HTML, or the value of an attribute. */
export const htmlText = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character])

/** A text without characters that XML 1.0 cannot hold. */
export const heldByXml = (text: string): string => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Cs}/gu, '')

/** A text as content of XML 1.0, without characters that it cannot hold. */
export const xmlText = (text: string): string => heldByXml(text).replace(/[&<>]/g, (character) => ENTITIES[character])
