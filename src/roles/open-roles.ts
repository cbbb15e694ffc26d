import type { OpenRole, Role, RoleServices } from './role.ts'

/**
 * Opens the projector, whose tables the others read, and then the others together, since each waits for answers of
 * engines. Puts those that are open in front of `roles`, the last one first, also where one fails.
 */
export const openRoles = async (
  services: RoleServices,
  projector: OpenRole | undefined,
  others: readonly OpenRole[],
  roles: Role[],
): Promise<void> => {
  if (projector !== undefined) roles.unshift(await projector(services))
  const opened = await Promise.allSettled(others.map((open) => open(services)))
  for (const one of opened) if (one.status === 'fulfilled') roles.unshift(one.value)
  for (const one of opened) if (one.status === 'rejected') throw one.reason
}
