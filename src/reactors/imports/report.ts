import type { EventLog } from '../../engines/event-log.ts'
import type { FileStore } from '../../engines/file-store.ts'
import type { ImportError, ImportRequested } from '../../features/imports/events.ts'
import { reportKey } from '../../features/imports/views.ts'
import { csvWriter } from '../../kit/formats/csv-writer.ts'
import type { OpenTable } from '../../kit/formats/open-table.ts'
import { type Cell, shownCell } from '../../kit/formats/table-cells.ts'
import { type TableWriter, type WrittenCell, writeTable } from '../../kit/formats/table-writer.ts'
import { xlsWriter } from '../../kit/formats/xls-writer.ts'
import { xlsxInThread } from '../../kit/formats/xlsx-thread.ts'
import { keptErrors } from './pages.ts'

const REASON = 'Reason'
const REPORT_BYTES_MAX = 4 * 1024 * 1024 * 1024

/** Stores the refused rows as sent, each with its reason in a last column; answers the size. `late`: in row order. */
export const writeReport = async (
  { log, files }: { log: EventLog; files: FileStore },
  importId: string,
  asked: ImportRequested,
  table: OpenTable,
  late: readonly ImportError[],
): Promise<number> => {
  const errors = inOrder(keptErrors(log, importId), late)
  const pages = writeTable(writerOf(asked, [...table.columns, REASON]), refusedRows(errors, table))
  const bytes = async function* () {
    for await (const piece of pages) yield typeof piece === 'string' ? Buffer.from(piece) : piece
  }
  return files.put(reportKey(asked.organizationId, importId), bytes(), REPORT_BYTES_MAX)
}

const writerOf = ({ format, delimiter, sheet = '' }: ImportRequested, header: readonly string[]): TableWriter => {
  if (format === 'csv') return csvWriter({ header, ...(delimiter !== undefined && { delimiter }) })
  return format === 'xlsx' ? xlsxInThread({ header, sheet }) : xlsWriter({ header, sheet })
}

/** Both in the order of rows; `late` were refused once all rows were read. */
async function* inOrder(kept: AsyncIterable<ImportError>, late: readonly ImportError[]): AsyncGenerator<ImportError> {
  let next = 0
  for await (const error of kept) {
    while (next < late.length && late[next].row < error.row) yield late[next++]
    yield error
  }
  yield* late.slice(next)
}

async function* refusedRows(errors: AsyncGenerator<ImportError>, table: OpenTable): AsyncGenerator<WrittenCell[][]> {
  let next = (await errors.next()).value as ImportError | undefined
  for await (const rows of table.pages()) {
    const lines: WrittenCell[][] = []
    for (const { row, cells } of rows) {
      if (next?.row !== row) continue
      const { column, message } = next
      const reason = column === null ? message : `${column}: ${message}`
      lines.push([...table.columns.map((_, i) => written(cells[i])), reason])
      next = (await errors.next()).value as ImportError | undefined
    }
    if (lines.length > 0) yield lines
    if (next === undefined) return
  }
}

const written = (cell: Cell | undefined): WrittenCell =>
  typeof cell === 'object' && cell !== null ? shownCell(cell) : cell
