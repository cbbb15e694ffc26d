import type { TableStore } from '../engines/table-store.ts'
import { breathe } from '../kernel/breath.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { Row } from '../kernel/table.ts'

type TrackerRow = Row & { _id: string; name: string; hubIds: string[]; teamId?: string; userId?: string }

const TRACKERS = 'trackers'
const PAGE_ROWS = 500

/** What readers of points need to know of trackers, whose rows belong to another feature. */
export const trackerLookups = (tables: Pick<TableStore, 'find' | 'scan' | 'getMany'>) => ({
  visibleTrackers: async ({
    organizationId,
    hubIds,
  }: Pick<UserCaller, 'organizationId' | 'hubIds'>): Promise<'all' | string[]> =>
    hubIds === 'all' ? 'all' : idsWhere(tables, organizationId, { hubIds }),

  trackersOf: (organizationId: string, field: 'userId' | 'vehicleId', id: string): Promise<string[]> =>
    idsWhere(tables, organizationId, { [field]: id }),

  trackerNames: async (organizationId: string, trackerIds: readonly string[]): Promise<(string | undefined)[]> => {
    const names: (string | undefined)[] = []
    for (let from = 0; from < trackerIds.length; from += PAGE_ROWS) {
      await breathe()
      const ids = trackerIds.slice(from, from + PAGE_ROWS)
      for (const row of await tables.getMany<TrackerRow>(TRACKERS, organizationId, ids)) names.push(row?.name)
    }
    return names
  },

  async *trackerFacts(
    organizationId: string,
  ): AsyncGenerator<{ trackerId: string; facts: { name: string; hubIds: readonly string[]; teamId?: string } }> {
    for await (const { id, row } of tables.scan<TrackerRow>(TRACKERS, organizationId))
      yield { trackerId: id, facts: factsOf(row) }
  },
})

/** The part of a tracker's row that the live view shows or filters by. */
export const factsOf = (row: Row): { name: string; hubIds: readonly string[]; teamId?: string } => {
  const { name, hubIds, teamId } = row as TrackerRow
  return { name, hubIds, teamId }
}

const idsWhere = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  where: { [field: string]: string | readonly string[] },
): Promise<string[]> => {
  const ids: string[] = []
  if (Object.values(where).some((values) => values.length === 0)) return ids
  for (let after: string | null | undefined; after !== null; ) {
    const page = await tables.find(TRACKERS, organizationId, { where, limit: PAGE_ROWS, after })
    ids.push(...page.rows.map(({ id }) => id))
    after = page.next
  }
  return ids
}
