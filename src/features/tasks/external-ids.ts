import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { claimOwner, normalizeKey, uniqueClaim } from '../../kit/commands/unique-claim.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { TASKS, type TaskRow } from './views.ts'

export interface ExternalIdServices {
  tables: Pick<TableStore, 'get' | 'find'>
  log: Pick<EventLog, 'read'>
  keyring: Keyring
}

const AT_ONCE = 16

/** The task with an `externalId`, in whatever case and Unicode form: what counts as taken is found. */
export const taskByExternalId = async (
  { tables, log, keyring }: ExternalIdServices,
  organizationId: string,
  externalId: string,
): Promise<TaskRow | undefined> => {
  const { rows } = await tables.find<TaskRow>(TASKS, organizationId, { where: { externalId }, limit: 1 })
  if (rows.length > 0) return rows[0].row
  // The index compares exactly; the claim of the value knows its task.
  const id = await claimOwner(log, uniqueClaim(keyring, 'task', 'externalId', organizationId, externalId))
  const row = id === undefined ? undefined : await tables.get<TaskRow>(TASKS, organizationId, id)
  return normalizeKey(String(row?.externalId ?? '')) === normalizeKey(externalId) ? row : undefined
}

/** The values of a filter as the tasks that have them write them. */
export const writtenExternalIds = async (
  services: ExternalIdServices,
  organizationId: string,
  asked: readonly string[],
): Promise<string[]> => {
  const written: string[] = [...asked]
  await severalAtOnce(asked.entries(), AT_ONCE, async ([i, externalId]) => {
    const task = await taskByExternalId(services, organizationId, externalId)
    written[i] = String(task?.externalId ?? externalId)
  })
  return written
}
