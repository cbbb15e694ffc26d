import { parentPort, workerData } from 'node:worker_threads'
import { utils, write } from '@e965/xlsx'

const { rows, sheet } = workerData as { rows: unknown[][]; sheet: string }
const name = sheet
  .replace(/[[\]:*?/\\]/g, ' ')
  .trim()
  .slice(0, 31)
const book = utils.book_new()
utils.book_append_sheet(book, utils.aoa_to_sheet(rows), name === '' ? 'Sheet' : name)
parentPort?.postMessage(new Uint8Array(write(book, { type: 'buffer', bookType: 'biff8' }) as Buffer))
