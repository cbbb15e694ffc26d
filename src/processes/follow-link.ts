import { isOfAnother } from '../features/identity/links/email-undo.ts'
import {
  FOLLOW_LINK,
  type FollowLinkData,
  VERIFY_ADDRESS,
  type VerifyAddressData,
} from '../features/identity/processes.ts'
import { Failure, unlessGone } from '../kernel/errors.ts'
import { defineProcess, type OriginOf, type Process, type StepOrigin } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { changeOwner, inOrganization, type Office } from './office.ts'
import { proofSteps } from './proof.ts'

/**
 * A person followed a mailed link: they become verified, get a new password, or another e-mail, in every organization.
 * An e-mail taken by somebody else since refuses it. Restoring one leaves organizations joined under another.
 */
export const followLink = (office: Office): Process<FollowLinkData> =>
  defineProcess(FOLLOW_LINK, [
    {
      name: 'identity',
      run: ({ identityId, email: _email, ...follow }, originOf) => {
        const origin = originOf()
        const command = { type: 'followLink', ...follow, at: formatTime(origin.now) } as const
        return office.people.command(identityId, command, origin)
      },
    },
    ...proofSteps<FollowLinkData>(office, ({ identityId, email }) => ({ identityId, email })),
    { name: 'memberships', run: (data, originOf) => returnMemberships(office, data, originOf) },
  ])

/** A person signed in elsewhere with an unverified address. */
export const verifyAddress = (office: Office): Process<VerifyAddressData> =>
  defineProcess(VERIFY_ADDRESS, [
    {
      name: 'identity',
      run: ({ identityId, email, passwordHash }, originOf) => {
        const origin = originOf()
        const command = { type: 'verifyEmail', email, passwordHash, at: formatTime(origin.now) } as const
        return office.people.command(identityId, command, origin)
      },
    },
    ...proofSteps<VerifyAddressData>(office, ({ identityId }) => ({ identityId })),
  ])

/** Members who joined with an address they no longer have are invited again, except an organization's last owner. */
const returnMemberships = async (
  office: Office,
  { identityId }: FollowLinkData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  const state = (await office.people.load(identityId))?.state
  const wrotes: (Wrote | undefined)[] = []
  for (const membership of state?.memberships ?? []) {
    const { organizationId, userId } = membership
    const { status, values } = (await office.users.load(userId)).state
    if (!isOfAnother(membership, state?.email) || status !== 'live' || values.status === 'invited') continue
    const there = (part: string): StepOrigin => inOrganization(originOf(`${userId} ${part}`), organizationId)
    const role = (await office.roles.load(values.roleId as string)).state.values
    const isOwner = role?.key === 'owner' && values.status === 'active'
    if (isOwner && !(await isRemoved(office, userId, there('owner')))) continue
    const invited = office.users.update(there('user'), userId, (before) => ({ ...before, status: 'invited' }))
    wrotes.push(await unlessGone(invited.then(({ wrote }) => wrote)))
  }
  return allWrote(...wrotes)
}

/** Whether their ownership was removed; the last owner stays. */
const isRemoved = async (office: Office, userId: string, origin: StepOrigin): Promise<boolean> => {
  try {
    await changeOwner(office, 'remove', userId, origin)
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') return false
    throw error
  }
}
