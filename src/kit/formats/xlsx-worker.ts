import { parentPort } from 'node:worker_threads'
import type { TableWriter } from './table-writer.ts'
import type { XlsxAnswer, XlsxAsked } from './xlsx-request.ts'
import { xlsxWriter } from './xlsx-writer.ts'

const books = new Map<number, TableWriter>()

const piece = (asked: Exclude<XlsxAsked, { kind: 'close' }>): ReturnType<TableWriter['rows']> => {
  const { book } = asked
  if (asked.kind === 'start') books.set(book, xlsxWriter(asked.options))
  const writer = books.get(book) as TableWriter
  if (asked.kind === 'start') return writer.start()
  return asked.kind === 'rows' ? writer.rows(asked.rows) : writer.end()
}

const answerOf = async (asked: Exclude<XlsxAsked, { kind: 'close' }>): Promise<XlsxAnswer> => {
  const { book } = asked
  try {
    return { book, bytes: new Uint8Array((await piece(asked)) as Uint8Array) }
  } catch (error) {
    return { book, error }
  }
}

parentPort?.on('message', (asked: XlsxAsked) => {
  if (asked.kind === 'close') books.delete(asked.book)
  else
    void answerOf(asked).then((answer) =>
      parentPort?.postMessage(answer, 'bytes' in answer ? [answer.bytes.buffer as ArrayBuffer] : []),
    )
})
