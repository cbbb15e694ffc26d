import type { UserCaller } from '../../src/kernel/caller.ts'

/** A user who sees and may do everything that the permissions say, unless the fields say otherwise. */
export const callerWith = (permissions: readonly string[], fields: Partial<UserCaller> = {}): UserCaller => ({
  kind: 'user',
  organizationId: 'org-1',
  userId: 'u',
  identityId: 'i',
  email: 'a@b.c',
  jti: 'j',
  expiresAt: 9e12,
  roleId: 'r',
  permissions: new Set(permissions),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
  ...fields,
})
