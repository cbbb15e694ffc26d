import type { EventLog } from '../../engines/event-log.ts'
import { eventsOf } from '../../engines/event-log.ts'
import { type ImportError, IMPORT_PAGE, type ImportPage, pagesStream } from '../../features/imports/events.ts'
import { decodeJson, encodeJson } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'

/** Keeps the results of a page of rows. Its id is derived from the last row, so a repeated attempt adds nothing. */
export const keepPage = async (log: EventLog, importId: string, lastRow: number, page: ImportPage): Promise<void> => {
  const { errors, changed, places = [] } = page
  if (errors.length + changed.length + places.length === 0) return
  const event = {
    id: idFrom('import-page', importId, lastRow),
    type: IMPORT_PAGE,
    data: encodeJson(page),
    isJson: true,
    metadata: { organizationId: page.organizationId, actor: 'reactor:import', $correlationId: importId },
  }
  await log.append(pagesStream(importId), [event], 'any')
}

/** Errors of rows by the number of the row, in their first version. */
export async function* keptErrors(log: EventLog, importId: string): AsyncGenerator<ImportError> {
  let last = 0
  for await (const { errors } of keptPages(log, importId)) {
    for (const error of [...errors].sort((a, b) => a.row - b.row)) {
      if (error.row <= last) continue
      last = error.row
      yield error
    }
  }
}

/** Pages in the order of the file; a page that was kept twice comes once. */
export async function* keptPages(log: EventLog, importId: string): AsyncGenerator<ImportPage> {
  const seen = new Set<string>()
  for await (const event of eventsOf(log, pagesStream(importId))) {
    if (seen.has(event.id)) continue
    seen.add(event.id)
    yield decodeJson<ImportPage>(event.data)
  }
}
