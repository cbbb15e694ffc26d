import { Worker } from 'node:worker_threads'
import type { TableWriter, WrittenCell } from './table-writer.ts'

export interface XlsOptions {
  header: readonly string[]
  sheet: string
}

/** Capacity of a sheet of Excel 97, its header included. */
const ROWS_MAX = 65_536

/** A workbook of Excel 97 to 2003, made whole in a thread of its own: for few rows. Rows beyond a sheet are dropped. */
export const xlsWriter = ({ header, sheet }: XlsOptions): TableWriter => {
  const rows: (readonly WrittenCell[])[] = [header]
  return {
    start: () => '',
    rows: (more) => {
      rows.push(...more.slice(0, ROWS_MAX - rows.length))
      return ''
    },
    end: () => made(rows, sheet),
  }
}

const made = (rows: readonly (readonly WrittenCell[])[], sheet: string): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./xls-worker.js', import.meta.url), { workerData: { rows, sheet } })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
