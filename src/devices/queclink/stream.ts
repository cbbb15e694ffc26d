import { textProtocol } from '../text-stream.ts'
import { readReport } from './report.ts'

/** Queclink's @Track in text: reports `+RESP:GT…$`, earlier ones `+BUFF:GT…$`, heartbeats `+ACK:GTHBD…$`. */
export const queclink = textProtocol({
  begin: '+',
  endOf: (text) => text.search(/[$\0]/) + 1,
  read: (message) => readReport(message.slice(0, -1)),
})
