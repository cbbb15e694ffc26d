import type { TableDeclaration } from '../../kernel/table.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { isOver, type TaskRow } from '../tasks/views.ts'

export const SHARES = 'shares'
export const SHARE = eventTypes('share')
export const SHARE_STREAMS = 'share-'

/** A link for following a task or a tracker without an account, as its table stores it. */
export type ShareRow = {
  _id: string
  organizationId: string
  version: number
  createdAt: string
  updatedAt: string
  taskId?: string
  trackerId?: string
  /** RFC 3339, as requested. */
  expiresAt?: string
  showTrail: boolean
  /** Hubs of the shared subject. */
  hubIds: string[]
  tokenHash: string
}

/** Shares by the hash of their token, without organization. */
export const SHARE_TOKENS: TableDeclaration = { name: 'share-tokens', version: 1 }

export type ShareTokenRow = { organizationId: string; shareId: string }

const TOKEN = /^[\w-]{43}$/

/** A token of 256 bits derived from the seed, and its stored hash. */
export const makeShareToken = (keyring: Keyring, seed: string): { token: string; tokenHash: string } => {
  const token = keyring.hmac('share-token-secret', seed).toString('base64url')
  return { token, tokenHash: tokenHashOf(keyring, token) as string }
}

/** Undefined if it is no token. Tokens are long and random: a keyed hash without stretching is enough. */
export const tokenHashOf = (keyring: Keyring, token: string): string | undefined =>
  TOKEN.test(token) ? keyring.hmac('share-token', token).toString('base64url') : undefined

export const followUrl = (publicUrl: string, token: string): string => `${publicUrl}/follow/${token}`

const AFTER_TASK_MS = 3_600_000
/** Bound for tasks that are never done. */
export const TASK_MS_MAX = 90 * 86_400_000

/** Most that the clocks of two processes are taken to differ. */
const CLOCKS_MS = 60_000

/** Whether the subject of a share exists; a tracker that was deleted and made anew since does not count. */
export const isThere = (
  { createdAt }: Pick<ShareRow, 'createdAt'>,
  subject: { createdAt?: unknown } | undefined,
): boolean => subject !== undefined && !(Date.parse(String(subject.createdAt)) > Date.parse(createdAt) + CLOCKS_MS)

type ShareSpan = Pick<ShareRow, 'taskId' | 'expiresAt' | 'createdAt'>

/** End of a share, ms since the epoch; immediate if the task no longer exists. */
export const endOfShare = ({ taskId, expiresAt, createdAt }: ShareSpan, task?: TaskRow): number => {
  const end = expiresAt === undefined ? Date.parse(createdAt) + TASK_MS_MAX : Date.parse(expiresAt)
  if (taskId === undefined) return end
  if (task === undefined) return 0
  return isOver(task) ? Math.min(end, overAt(task) + AFTER_TASK_MS) : end
}

/** A device may have reported a finish in the future. */
const overAt = ({ finishedAt, cancelledAt, updatedAt }: TaskRow): number =>
  Math.min(Date.parse(finishedAt ?? cancelledAt ?? (updatedAt as string)), Date.parse(updatedAt as string))
