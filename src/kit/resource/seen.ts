import { Failure } from '../../kernel/errors.ts'
import { rowOf } from '../commands/declared-event.ts'
import { seesRow } from '../http/list-query.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { ResourceState } from './decider.ts'
import type { WriteOrigin } from './writes.ts'

/** @throws Failure not_found for a record that does not exist, or that its writer does not see */
export const assertSeen = async (
  declaration: ResourceDeclaration,
  { tables }: Pick<ResourceServices, 'tables'>,
  { caller, organizationId }: WriteOrigin,
  { id, state, version }: { id: string; state: ResourceState; version: number },
): Promise<void> => {
  if (state.status !== 'live' || state.organizationId !== organizationId) throw new Failure('not_found')
  const { fields, hubField, plural, audience, table } = declaration
  if (caller === undefined || hubField === undefined) return
  if (caller.hubIds === 'all' && audience === undefined) return
  const isOwn = hubField === '_id' || Object.hasOwn(fields, hubField)
  const row = isOwn
    ? rowOf(id, version, state, table?.derived?.(state.values))
    : await tables.get(plural, organizationId, id)
  if (row === undefined || !seesRow(caller, row, declaration)) throw new Failure('not_found')
}
