import type { Process } from '../kit/commands/process.ts'
import { changeUser } from './change-user.ts'
import { createUser } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { foundOrganization } from './found-organization.ts'
import type { Office } from './office.ts'

/** Every command that writes several streams as facts that anyone carries on. */
// biome-ignore lint/suspicious/noExplicitAny: each kind has its own data, which only its steps look into
export const listProcesses = (office: Office): Process<any>[] => [
  foundOrganization(office),
  createUser(office),
  changeUser(office),
  deleteUser(office),
]
