import { idFrom } from '../../../kit/commands/ids.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import type { LinkIssued } from '../events.ts'
import type { IdentityState, Membership } from '../identity-state.ts'
import type { Link } from './links.ts'

export const undoIdOf = (changeLinkId: string): string => idFrom('undo', changeLinkId)

/** Adds the link that undoes a change of the address: mailed to the present address when the change is requested. */
export const withUndo = (links: readonly Link[], change: LinkIssued, email: string): Link[] => {
  const { linkId, organizationId, userId, expiresAt, at } = change
  const undo: Link = { linkId: undoIdOf(linkId), kind: 'emailUndo', email, organizationId, userId, expiresAt, at }
  const others = links.filter(
    (link) => link.kind !== 'emailUndo' || (!isSame(link.email, email) && link.expiresAt > at),
  )
  return [...others, undo]
}

/** The links after a change of the address: undo links store the state at that time. */
export const leftBehind = (links: readonly Link[], { email, moves, boundTo }: IdentityState): Link[] =>
  links.map((link) =>
    link.kind === 'emailUndo' && isSame(link.email, email) ? { ...link, left: link.left ?? { moves, boundTo } } : link,
  )

/**
 * The identity after a change is undone: later changes can no longer be undone, the organizations open before are open
 * again, and those joined under another address since are closed to this one.
 */
export const undone = (state: IdentityState, { linkId, email, left }: Link): IdentityState => {
  const until = state.links.findIndex((link) => link.linkId === linkId)
  const links = state.links.filter(({ kind }, i) => kind !== 'emailUndo' || i <= until)
  if (left === undefined) return { ...state, links }
  const memberships = state.memberships.map((membership) => {
    const { since } = membership
    const isOthers = since !== undefined && since.moves > left.moves && !isSame(since.email, email)
    return isOthers ? { ...membership, onlyFor: since.email } : membership
  })
  return { ...state, links, boundTo: left.boundTo, memberships }
}

/** Whether the membership began under another address, from which this one was restored. */
export const isOfAnother = ({ onlyFor }: Membership, email: string | undefined): boolean =>
  onlyFor !== undefined && (email === undefined || !isSame(onlyFor, email))

const isSame = (one: string, other: string): boolean => normalizeKey(one) === normalizeKey(other)
