import type { ExportRequested } from '../../src/features/exports/events.ts'
import { EXPORT, exportKey } from '../../src/features/exports/views.ts'
import { decodeJson } from '../../src/kernel/event.ts'
import { handleCommand } from '../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import { jobDecider } from '../../src/kit/jobs/life.ts'
import { EDITOR, ORGANIZATION } from './fleet.ts'
import type { World } from './host.ts'
import { BEGUN_MS, type Timeline } from './timeline.ts'
import type { Asking, Told } from './told.ts'

const CANCEL_MS_MAX = 3_000

/** Asks for a file of all tasks; some think better of it. */
export const exportTasks = (clients: Asking, timeline: Timeline): void => {
  const at = BEGUN_MS + Math.floor(timeline.nowMs)
  const id = idFrom('simulated', 'export', timeline.between(0, 1e9))
  const requested: ExportRequested = {
    ...{ organizationId: ORGANIZATION, userId: EDITOR, at, kind: 'task', format: 'json', mapping: {}, filter: {} },
    ...{ timeZone: 'UTC', total: 0, isDirect: false },
  }
  clients.ask(
    ({ services }) => {
      const context = { ids: idSource(at, Buffer.from(id), true), metadata: { organizationId: ORGANIZATION } }
      return handleCommand(
        services!.log,
        EXPORT.stream(id),
        jobDecider(EXPORT, id),
        { kind: 'request', requested },
        context,
      )
    },
    () => {
      clients.told.exports.add(id)
      clients.open--
    },
  )
  if (!timeline.chance(0.3)) return
  clients.open++
  timeline.after(timeline.between(0, CANCEL_MS_MAX), () => cancel(clients, timeline, id))
}

const cancel = (clients: Asking, timeline: Timeline, id: string): void => {
  const at = BEGUN_MS + Math.floor(timeline.nowMs)
  clients.ask(
    ({ services }) => {
      const context = {
        ids: idSource(at, Buffer.from(`cancel ${id}`), true),
        metadata: { organizationId: ORGANIZATION },
      }
      const command = { kind: 'cancel', organizationId: ORGANIZATION, at } as const
      return handleCommand(services!.log, EXPORT.stream(id), jobDecider(EXPORT, id), command, context)
    },
    () => void clients.open--,
    () => 'pointless' as const, // not asked for yet, or over
  )
}

/** 10: each export that was asked for ends once; what is done has its file, with the tasks that it says. */
export const exportFaults = ({ log, files }: World, { exports }: Told): string[] =>
  [...exports].flatMap((id) => {
    const events = log.everything(EXPORT.stream(id))
    const ends = events.slice(events.findIndex(({ type }) => ENDS.includes(type)))
    // What was cancelled while its file was written keeps the result.
    const endsMax = ends[0]?.type === EXPORT.types.cancelled && ends[1]?.type === EXPORT.types.finished ? 2 : 1
    if (ends.length !== endsMax || !ENDS.includes(ends[0].type))
      return [`export ${id} went ${events.map(({ type }) => type).join(', ') || 'nowhere'}`]
    if (ends[0].type === EXPORT.types.failed) return [`export ${id} failed: ${Buffer.from(ends[0].data)}`]
    if (ends[0].type === EXPORT.types.cancelled) return []
    const { attempt, result } = decodeJson<{ attempt: number; result: { rows: number; size: number } }>(ends[0].data)
    const file = files.get(exportKey(ORGANIZATION, id, attempt))
    const rows = file === undefined ? [] : (JSON.parse(String(Buffer.from(file))) as { _id: string }[])
    const isWhole = rows.length === result.rows && new Set(rows.map(({ _id }) => _id)).size === rows.length
    return file?.byteLength === result.size && isWhole ? [] : [`the file of export ${id} is not what it says`]
  })

const ENDS: readonly string[] = [EXPORT.types.finished, EXPORT.types.failed, EXPORT.types.cancelled]
