import type { Feature } from '../../feature.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { SessionUses } from '../identity/sessions/session-uses.ts'
import { assertEnds, assertHolds, assertOwner, assertReach, roleOf } from '../identity/users/user-rules.ts'
import { type AssertMayGive, defineServiceAccount } from './declaration.ts'
import { rotateKey } from './rotate-key.ts'

/** Same bounds as for users: role, hubs, and an expiry if the giver has one. */
const assertMayGive: AssertMayGive = async ({ services, caller, organizationId }, { roleId, hubId, expiresAt }) => {
  if (caller === undefined) return
  const role = await roleOf(services.tables, organizationId, roleId as string)
  assertHolds(caller, role)
  assertOwner(caller, role)
  assertReach(caller, hubId as string[], 'service account')
  assertEnds(caller, expiresAt as string | undefined)
}

const serviceAccount = defineServiceAccount(assertMayGive)

export const serviceAccounts: Feature = {
  resources: [serviceAccount],
  routes: (services) => {
    const uses = new SessionUses(services)
    return serviceAccount.routes(services, {
      actions: [rotateKey(serviceAccount)],
      present: async (rows, { wants }) => {
        if (!wants('lastUsedAt')) return [...rows]
        const times = await uses.lastUsed(rows.map(({ _id }) => _id as string))
        return rows.map((row, i) => {
          const at = times[i]
          return at === undefined ? row : { ...row, lastUsedAt: formatTime(at) }
        })
      },
    })
  },
}
