import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import type { IdentityContext } from './context.ts'

/** Used single-use values until they expire: states and codes of external sign-ins, challenges, factor codes. */
export const SIGN_INS_USED: TableDeclaration = { name: 'sign-ins-used', version: 1, lives: 'row' }

/** Marks a single-use value as used, on all nodes; false if it already was. `expiresAt` in ms since the epoch. */
export const isFirstUse = async (
  { services: { tables } }: Pick<IdentityContext, 'services'>,
  id: string,
  expiresAt: number,
): Promise<boolean> => {
  const used = { table: SIGN_INS_USED.name, scope: NO_ORGANIZATION, id, row: { used: true }, expiresAt }
  return (await tables.putIfAbsent(used)) === undefined
}
