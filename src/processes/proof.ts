import { unlessGone } from '../kernel/errors.ts'
import type { OriginOf, Step } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { inOrganization, type Office } from './office.ts'

interface Proven {
  identityId: string
  /** The e-mail that became theirs by it. */
  email?: string
}

/**
 * Steps after each proof in the identity (features/identity/proof.ts): earlier sessions end, earlier networks are no
 * longer known, and users show no ended change. `provenBy` returns undefined if there is no proof.
 */
export const proofSteps = <Data>(
  office: Pick<Office, 'people' | 'sessions' | 'throttle' | 'users'>,
  provenBy: (data: Data) => Proven | undefined,
): Step<Data>[] => [
  {
    name: 'sessions',
    run: async (data, originOf) => {
      const proven = provenBy(data)
      const origin = originOf()
      return proven && office.sessions.endAll(proven.identityId, { at: formatTime(origin.now) }, origin)
    },
  },
  {
    name: 'networks',
    run: async (data, originOf) => {
      const proven = provenBy(data)
      const person = proven && (await office.people.load(proven.identityId))
      if (person === undefined) return undefined
      const { identityId, state } = person
      await office.throttle.noteProof(state.email, { identityId, proofs: state.proofs }, originOf().now)
      return undefined
    },
  },
  {
    name: 'users',
    run: async (data, originOf) => {
      const proven = provenBy(data)
      return proven && showIdentity(office, proven, originOf)
    },
  },
]

/** Copies the identity's new e-mail, and a pending one while its link is open, to its users. */
export const showIdentity = async (
  { people, users }: Pick<Office, 'people' | 'users'>,
  { identityId, email }: Proven,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  const state = (await people.load(identityId))?.state
  const wrotes: (Wrote | undefined)[] = []
  for (const { organizationId, userId } of state?.memberships ?? []) {
    const there = inOrganization(originOf(userId), organizationId)
    const shown = users.update(there, userId, ({ pendingEmail, pendingEmailUntil, ...before }) => {
      const isPending = state?.links.some(
        (link) => link.kind === 'emailChange' && link.useId === undefined && link.email === pendingEmail,
      )
      return {
        ...before,
        ...(email !== undefined && { email: state?.email ?? email }),
        ...(isPending && { pendingEmail, pendingEmailUntil }),
      }
    })
    wrotes.push(await unlessGone(shown.then(({ wrote }) => wrote)))
  }
  return allWrote(...wrotes)
}
