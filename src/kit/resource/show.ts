import { Failure } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { seesRow, shownRow, wantsField } from '../http/list-query.ts'
import { userOf } from '../http/request-context.ts'
import type { RouteRequest } from '../http/route.ts'
import { pick } from './pick.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import { listShape } from './rows.ts'
import { ResourceSecrets } from './secrets.ts'
import { ResourceWriter } from './write.ts'

export type Presented = Pick<RouteRequest, 'caller' | 'now'>

/** Resource of the shown rows, and the function that shows them. */
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
  if (row === undefined || !seesRow(caller, row, declaration)) throw new Failure('not_found')
  return row
}

/** A row as the routes of its resource answer it, for hand-written routes. */
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

/** A row made of an event from before the fields were sealed lacks them: the log has them. */
const openedRows = (
  declaration: ResourceDeclaration,
  services: ResourceServices,
  rows: readonly Row[],
): Promise<Row[]> => {
  const { sealed = [] } = declaration.secrets ?? {}
  const secrets = new ResourceSecrets(declaration, services.keyring)
  return Promise.all(
    rows.map(async (row) => {
      if (sealed.every((name) => Object.hasOwn(row.sealed as object, name))) return secrets.openedRow(row)
      const { state } = await new ResourceWriter(declaration, services).load(row._id as string)
      return { ...secrets.openedRow(row), ...pick(secrets.opened(state), sealed) }
    }),
  )
}

/** Rows with the members known only at answer time. */
export const presented = async (
  { declaration, services, present = declaration.present }: Presenting,
  request: Presented,
  rows: readonly Row[],
  fields: string | undefined,
  isList = false,
): Promise<readonly Row[]> => {
  if (present === undefined) return rows
  const opened = declaration.secrets?.sealed === undefined ? rows : await openedRows(declaration, services, rows)
  const wants = (member: string): boolean => wantsField(fields, member)
  return present(opened, { services, caller: userOf(request), now: request.now, wants, isList })
}
