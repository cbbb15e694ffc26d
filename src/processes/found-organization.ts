import { unlessGone } from '../kernel/errors.ts'
import { FLOW_TEMPLATES } from '../features/flows/templates.ts'
import { copiedFlow, flowAt } from '../features/flows/views.ts'
import { USER_HUBS_MAX } from '../features/identity/users/user.ts'
import { FOUND_ORGANIZATION, type FoundOrganizationData } from '../features/identity/processes.ts'
import { defineProcess, type OriginOf, type Process, type Step } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { changeOwner, ensureMade, issueLink, type Office } from './office.ts'

/**
 * Creates an organization with its hubs, roles, flows and owner. For a sign-up the identity comes first, since the
 * e-mail may be taken; the membership comes last, since a login finds an organization by it.
 */
export const foundOrganization = (office: Office): Process<FoundOrganizationData> =>
  defineProcess(FOUND_ORGANIZATION, [
    {
      name: 'identity',
      run: async ({ signUp, owner: { identityId, email, name } }, originOf) => {
        if (signUp === undefined) return undefined
        const origin = originOf()
        const { passwordHash, firstOnly } = signUp
        const originOrganizationId = origin.organizationId
        const at = formatTime(origin.now)
        const create = { type: 'create', email, name, passwordHash, originOrganizationId, at } as const
        return office.people.signUp(identityId, create, origin, firstOnly)
      },
    },
    countFounding(office),
    {
      name: 'organization',
      run: ({ name, settings }, originOf) => {
        const origin = originOf()
        return ensureMade(office.organizations, origin, origin.organizationId, { name, ...(settings && { settings }) })
      },
    },
    { name: 'hubs', run: ({ hubs }, originOf) => makeHubs(office, originOf, hubs) },
    { name: 'roles', run: ({ roles }, originOf) => makeRoles(office, originOf, roles) },
    { name: 'flows', run: ({ flows }, originOf) => makeFlows(office, originOf, flows ?? []) },
    {
      name: 'owner',
      run: async ({ owner, hubs }, originOf) => {
        const { identityId, userId, ...values } = owner
        // An owner has every hub; the list holds only the first ones.
        const hubId = hubs.slice(0, USER_HUBS_MAX).map(({ _id }) => String(_id))
        const body = { ...values, hubId }
        const made = await ensureMade(office.users, originOf('user'), userId, body, { identityId })
        await changeOwner(office, 'add', userId, originOf('owners'))
        return made
      },
    },
    {
      name: 'membership',
      run: async ({ owner: { identityId, userId } }, originOf) => {
        const origin = originOf()
        const { organizationId } = origin
        const at = formatTime(origin.now)
        const membership = { organizationId, userId }
        const added = await office.people.command(identityId, { type: 'addMembership', membership, at }, origin)
        const accessed = await office.people.command(
          identityId,
          { type: 'access', organizationId, at },
          originOf('access'),
        )
        return allWrote(added, accessed)
      },
    },
    {
      name: 'verification',
      run: async ({ signUp, owner: { identityId } }, originOf) =>
        signUp && issueLink(office, originOf(), identityId, signUp.link),
    },
  ])

/** In the founder's stream, so that simultaneous foundings count too. */
const countFounding = (office: Office): Step<FoundOrganizationData> => ({
  name: 'founder',
  run: async ({ organizationsMax, owner: { identityId } }, originOf) => {
    const origin = originOf()
    const { organizationId, now } = origin
    const command = { type: 'found', organizationId, organizationsMax, at: formatTime(now) } as const
    return office.people.command(identityId, command, origin)
  },
  undo: ({ owner: { identityId } }, originOf) => {
    const origin = originOf()
    const { organizationId, now } = origin
    const command = { type: 'endFounding', organizationId, at: formatTime(now) } as const
    return unlessGone(office.people.command(identityId, command, origin))
  },
})

const makeHubs = async (
  office: Office,
  originOf: OriginOf,
  hubs: FoundOrganizationData['hubs'],
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  for (const { _id, ...hub } of hubs)
    wrotes.push(await ensureMade(office.hubs, originOf(String(_id)), String(_id), hub))
  return allWrote(...wrotes)
}

/** Copied flows, and the templates that none of them replaces. */
const makeFlows = async (
  office: Office,
  originOf: OriginOf,
  copies: NonNullable<FoundOrganizationData['flows']>,
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  const names = new Set<string>()
  for (const { _id, flowId, version, key } of copies) {
    const content = await flowAt(office.log, flowId, version)
    if (content === undefined) continue
    const { needsDataType, ...body } = copiedFlow(content)
    names.add(content.name.toLowerCase())
    wrotes.push(
      await ensureMade(office.flows, originOf(_id), _id, body, { needsDataType, ...(key !== undefined && { key }) }),
    )
  }
  for (const { key, body } of FLOW_TEMPLATES) {
    if (copies.some((copy) => copy.key === key)) continue
    const origin = originOf(`flow ${key}`)
    const isTaken = names.has(String(body.name).toLowerCase())
    const name = isTaken ? `${body.name} (default)` : body.name
    wrotes.push(
      await ensureMade(office.flows, origin, origin.ids.next(), { ...body, name }, { key, needsDataType: false }),
    )
  }
  return allWrote(...wrotes)
}

const makeRoles = async (
  office: Office,
  originOf: OriginOf,
  roles: FoundOrganizationData['roles'],
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  for (const { _id, key, name, permissions } of roles) {
    const body = { name, permissions: [...permissions] }
    wrotes.push(await ensureMade(office.roles, originOf(_id), _id, body, key === undefined ? {} : { key }))
  }
  return allWrote(...wrotes)
}
