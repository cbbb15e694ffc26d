import { timingSafeEqual } from 'node:crypto'
import { invalid } from '../../../kernel/errors.ts'
import { readUuid, writeUuid } from '../../../kernel/uuid-bytes.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import type { LinkIssued, LinkKind } from '../events.ts'

/** A link of an identity in its stream: the last of each kind (invitations: of each organization). */
export interface Link extends LinkIssued {
  /** Command that followed it; absent while it is open. */
  useId?: string
  /** In undo links, after the change: number of changes until then, and the organizations open then; absent for all. */
  left?: { moves: number; boundTo?: readonly string[] }
}

const DAY_MS = 86_400_000

export const LIVES_MS: { [kind in LinkKind]: number } = {
  invitation: 7 * DAY_MS,
  verification: 7 * DAY_MS,
  reset: DAY_MS / 24,
  reopening: 7 * DAY_MS,
  emailChange: 7 * DAY_MS,
  emailUndo: 7 * DAY_MS,
}

/** A link issued at a time, ms since the epoch. */
export const newLink = (link: Omit<LinkIssued, 'expiresAt' | 'at'>, now: number): LinkIssued => ({
  ...link,
  expiresAt: formatTime(now + LIVES_MS[link.kind]),
  at: formatTime(now),
})

/** Adds a new link, which ends the older ones that it replaces. */
export const withLink = (links: readonly Link[], issued: LinkIssued): Link[] => [
  ...links.filter(({ kind, organizationId }) => !isSameFor(issued, kind, organizationId)),
  issued,
]

const isSameFor = (issued: LinkIssued, kind: LinkKind, organizationId: string | undefined): boolean =>
  kind === issued.kind && (kind !== 'invitation' || organizationId === issued.organizationId)

/** Whether it may still be followed. `at` is RFC 3339, like every time in facts. */
export const isOpen = ({ useId, expiresAt }: Link, at: string): boolean => useId === undefined && at < expiresAt

/** Answer for any link that cannot be followed, for whatever reason. */
export const linkEnded = () =>
  invalid('/token', 'is of no link that can be followed: it was used, replaced, or has expired')

const PURPOSE = 'mailed-link'
const ID_BYTES = 16
const SECRET_BYTES = 24

/** Token of a link: identity id, link id, and a secret that only the keyring can derive from both. */
export const linkToken = (keyring: Keyring, identityId: string, linkId: string): string => {
  const ids = Buffer.alloc(2 * ID_BYTES)
  writeUuid(identityId, ids, 0)
  writeUuid(linkId, ids, ID_BYTES)
  return Buffer.concat([ids, secretOf(keyring, identityId, linkId)]).toString('base64url')
}

/** Link of a token; undefined if this keyring did not issue it. */
export const readLinkToken = (keyring: Keyring, token: string): { identityId: string; linkId: string } | undefined => {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== 2 * ID_BYTES + SECRET_BYTES || bytes.toString('base64url') !== token) return undefined
  const [identityId, linkId] = [readUuid(bytes, 0), readUuid(bytes, ID_BYTES)]
  const isOurs = timingSafeEqual(bytes.subarray(2 * ID_BYTES), secretOf(keyring, identityId, linkId))
  return isOurs ? { identityId, linkId } : undefined
}

const secretOf = (keyring: Keyring, identityId: string, linkId: string): Buffer =>
  keyring.hmac(PURPOSE, `${identityId}|${linkId}`).subarray(0, SECRET_BYTES)
