import type { RowSource } from '../../kit/resource/rows.ts'
import { organization } from './organization.ts'
import { role } from './role.ts'
import { userRows } from './user.ts'

/** What this feature keeps in the directory. */
export const identityRows: readonly RowSource[] = [organization.rows, role.rows, userRows]
