import { isDeepStrictEqual } from 'node:util'
import type { FileStore } from '../../engines/file-store.ts'
import type { ExportRequested } from '../../features/exports/events.ts'
import { withCurrentNames } from '../../features/exports/current-names.ts'
import { assertMayExport, type ExportSources, openExport } from '../../features/exports/question.ts'
import { EXPORT, exportKey, type ExportRow } from '../../features/exports/views.ts'
import { writtenRows } from '../../features/exports/write-rows.ts'
import type { EventLog } from '../../engines/event-log.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { Row } from '../../kernel/table.ts'
import type { JobRun, JobWork } from '../../kit/jobs/attempt.ts'
import { assertRoom, type Quotas } from '../../kit/quotas/quotas.ts'
import { callerNow } from '../callers/caller-now.ts'

export type ExportRunServices = ExportSources & { log: EventLog; files: FileStore; clock: Clock; quotas?: Quotas }

const FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

/** The work of exports that are jobs: each attempt writes the whole file, by the requester's rights, which hold to its end. */
export const exportWork = (services: ExportRunServices): JobWork<ExportRequested, ExportRow> => ({
  kind: EXPORT,
  run: async (run) => {
    const { asked } = run
    return asked.isDirect ? { processed: asked.total, result: { rows: asked.total } } : writeFile(services, run)
  },
  release: async (id, attempt) => {
    const [first] = await services.log.read(EXPORT.stream(id), 0, 1)
    if (first?.type !== EXPORT.types.requested) return
    const { organizationId } = decodeJson<ExportRequested>(first.data)
    for (let each = 1; each <= attempt; each++) await services.files.delete(exportKey(organizationId, id, each))
  },
})

const writeFile = async (
  services: ExportRunServices,
  { id, attempt, asked, signal, progress }: JobRun<ExportRequested>,
): Promise<{ processed: number; result: { rows: number; size: number } }> => {
  const { tables, files, clock, quotas } = services
  const { organizationId, format, timeZone } = asked
  const caller = await requesterOf(services, asked)
  const question = await withCurrentNames(tables, organizationId, asked)
  const { shape, walk } = await openExport(services, caller, question, clock.now(), signal)
  let rows = 0
  const counted = async function* (pages: AsyncIterable<Row[]>) {
    for await (const page of pages) {
      signal.throwIfAborted()
      yield page
      rows += page.length
      await progress(rows)
    }
  }
  const pieces = writtenRows({ format, timeZone, shape }, counted(walk.pages()))
  const room = (await quotas?.left(organizationId, 'filesBytes')) ?? FILE_BYTES_MAX
  const size = await files
    .put(exportKey(organizationId, id, attempt), pieces, Math.min(room, FILE_BYTES_MAX))
    .catch(async (error: unknown) => {
      const isFull = error instanceof Failure && error.code === 'too_large' && room < FILE_BYTES_MAX
      if (isFull) await assertRoom(quotas, organizationId, 'filesBytes', room + 1)
      throw error
    })
  // Rights that changed meanwhile: the next attempt writes the file anew.
  if (!isDeepStrictEqual(await requesterOf(services, asked), caller))
    throw new Failure('overloaded', {
      message: 'The rights of the user who asked for this changed while it was written.',
    })
  return { processed: rows, result: { rows, size } }
}

/** @throws Failure forbidden for a requester who may not export any more */
const requesterOf = async ({ tables, clock }: ExportRunServices, asked: ExportRequested): Promise<UserCaller> => {
  const caller = await callerNow(tables, asked.organizationId, asked.userId, clock.now())
  if (caller === undefined)
    throw new Failure('forbidden', { message: 'The user who asked for this may not see it any more.' })
  assertMayExport(caller, asked.kind)
  return caller
}
