import type { TableRecord } from './layout.ts'
import { type Find, rangesOf } from '../table-store.ts'

/** @throws Error when the question names a field without an index: a fault of the program, not of the client. */
export const checkQuestion = (name: string, record: TableRecord, question: Find): void => {
  const { where = {}, every = {}, sort, text, words } = question
  for (const field of Object.keys({ ...where, ...every }))
    if (!record.equality.includes(field)) throw new Error(`Table ${name} declares no equality index on ${field}.`)
  for (const field of [...rangesOf(question).map((range) => range.field), sort?.field]) {
    if (field !== undefined && !record.range.includes(field))
      throw new Error(`Table ${name} declares no range index on ${field}.`)
  }
  if ((text !== undefined || words !== undefined) && record.text.length === 0)
    throw new Error(`Table ${name} declares no text index.`)
}
