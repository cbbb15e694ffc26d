import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import type { IdentityContext } from './context.ts'

/** What serves once, until it would have ended: states and codes of sign-ins elsewhere, challenges, codes of second factors. */
export const SIGN_INS_USED: TableDeclaration = { name: 'sign-ins-used', version: 1, lives: 'row' }

/** Notes that something that serves once is used, on all nodes; false when it was before. `expiresAt` in ms since the epoch. */
export const isFirstUse = async (
  { services: { tables } }: Pick<IdentityContext, 'services'>,
  id: string,
  expiresAt: number,
): Promise<boolean> => {
  const used = { table: SIGN_INS_USED.name, scope: NO_ORGANIZATION, id, row: { used: true }, expiresAt }
  return (await tables.putIfAbsent(used)) === undefined
}
