import { decodeJson } from '../src/kernel/event.ts'
import { idOfStream } from '../src/kit/commands/declared-event.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'
import { jobRows } from '../src/kit/jobs/rows.ts'
import type { ImportUndoResult } from '../src/features/imports/events.ts'
import { IMPORT, IMPORT_UNDO, IMPORT_UNDOS, type ImportRow, IMPORTS, stateOf } from '../src/features/imports/views.ts'

const rows = jobRows(IMPORT, IMPORTS)

interface Finished {
  organizationId: string
  result: ImportUndoResult
  at: number
}

/** Every import until it is deleted, with the times when it began and when it was taken back. */
export const imports: Projection = {
  ...rows,
  prefixes: [...rows.prefixes, IMPORT_UNDO.prefix],
  inputs: [...rows.inputs, IMPORT_UNDO.types.finished],
  apply: async (event, changes) => {
    const id = idOfStream(event.stream)
    const { organizationId, result, at } = decodeJson<Finished>(event.data)
    const before = await changes.get<ImportRow>(IMPORTS.name, organizationId, id)
    if (event.stream.startsWith(IMPORT_UNDO.prefix)) {
      if (before !== undefined && event.type === IMPORT_UNDO.types.finished)
        changes.put(IMPORTS.name, organizationId, id, { ...before, undoneAt: at, undo: result })
      return
    }
    await rows.apply(event, changes)
    const after = await changes.get<ImportRow>(IMPORTS.name, organizationId, id)
    if (after === undefined) return
    const startedAt = before?.startedAt ?? (event.type === IMPORT.types.started ? at : undefined)
    const state = stateOf(after)
    changes.put(IMPORTS.name, organizationId, id, { ...after, state, ...(startedAt !== undefined && { startedAt }) })
  },
}

/** Imports that are being taken back. */
export const importUndos = jobRows(IMPORT_UNDO, IMPORT_UNDOS)
