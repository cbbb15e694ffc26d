import { textProtocol } from '../text-stream.ts'
import { readMessage } from './message.ts'

/** TK103: messages in parentheses. A parenthesis between two `$` is part of a text for people. */
const endOf = (text: string): number => {
  let isFreeText = false
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '$') isFreeText = !isFreeText
    else if (text[at] === ')' && !isFreeText) return at + 1
  }
  return 0
}

export const tk103 = textProtocol({ begin: '(', endOf, read: (message) => readMessage(message.slice(1, -1)) })
