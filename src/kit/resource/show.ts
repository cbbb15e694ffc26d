import { Failure } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { seesRow, shownRow, wantsField } from '../http/list-query.ts'
import { userOf } from '../http/request-context.ts'
import type { RouteRequest } from '../http/route.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import { listShape } from './rows.ts'

export type Presented = Pick<RouteRequest, 'caller' | 'now'>

/** Whose rows are shown, and by what. */
export interface Presenting {
  declaration: ResourceDeclaration
  services: ResourceServices
  present?: ResourceDeclaration['present']
}

/** A row of the caller's organization that the caller sees. @throws Failure not_found */
export const findRow = async (
  declaration: ResourceDeclaration,
  services: Pick<ResourceServices, 'tables'>,
  request: Pick<RouteRequest, 'caller'>,
  id: string,
): Promise<Row> => {
  const caller = userOf(request)
  const row = await services.tables.get(declaration.plural, caller.organizationId, id.toLowerCase())
  const isSeen = row !== undefined && seesRow(caller, row, declaration.hubField)
  if (!isSeen || declaration.sees?.(caller, row) === false) throw new Failure('not_found')
  return row
}

/** A row as the routes of its resource answer it, for routes that are written by hand. */
export const shownBy = async (
  declaration: ResourceDeclaration,
  services: ResourceServices,
  request: Presented,
  row: Row,
  fields?: string,
): Promise<Row> => {
  const show = shownRow(listShape(declaration), fields, userOf(request))
  const [whole] = await presented({ declaration, services }, request, [row], fields)
  return show(whole)
}

/** Rows with what is known at answer time only. */
export const presented = async (
  { declaration, services, present = declaration.present }: Presenting,
  request: Presented,
  rows: readonly Row[],
  fields: string | undefined,
): Promise<readonly Row[]> => {
  if (present === undefined) return rows
  const wants = (member: string): boolean => wantsField(fields, member)
  return present(rows, { services, caller: userOf(request), now: request.now, wants })
}
