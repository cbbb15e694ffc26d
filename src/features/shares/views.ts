import type { TableDeclaration } from '../../kernel/table.ts'
import { eventTypes } from '../../kit/commands/declared-event.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { isOver, type TaskRow } from '../tasks/views.ts'

export const SHARES = 'shares'
export const SHARE = eventTypes('share')
export const SHARE_STREAMS = 'share-'

/** A link by which somebody without an account follows a task or a tracker, as its table keeps it. */
export type ShareRow = {
  _id: string
  organizationId: string
  version: number
  createdAt: string
  updatedAt: string
  taskId?: string
  trackerId?: string
  /** RFC 3339, as it was asked for. */
  expiresAt?: string
  showTrail: boolean
  /** Hubs of what is shared. */
  hubIds: string[]
  tokenHash: string
}

/** Shares by the hash of their token, without organization. */
export const SHARE_TOKENS: TableDeclaration = { name: 'share-tokens', version: 1 }

export type ShareTokenRow = { organizationId: string; shareId: string }

const TOKEN = /^[\w-]{43}$/

/** A token of 256 bits that follows from the seed, and the hash that is kept of it. */
export const makeShareToken = (keyring: Keyring, seed: string): { token: string; tokenHash: string } => {
  const token = keyring.hmac('share-token-secret', seed).toString('base64url')
  return { token, tokenHash: tokenHashOf(keyring, token) as string }
}

/** Undefined for what is no token. The token is long and random: a keyed hash without stretching is enough. */
export const tokenHashOf = (keyring: Keyring, token: string): string | undefined =>
  TOKEN.test(token) ? keyring.hmac('share-token', token).toString('base64url') : undefined

/** Where a share is followed. */
export const followUrl = (publicUrl: string, token: string): string => `${publicUrl}/follow/${token}`

const AFTER_TASK_MS = 3_600_000
/** A task that is never done is not followed for ever. */
export const TASK_MS_MAX = 90 * 86_400_000

type ShareSpan = Pick<ShareRow, 'taskId' | 'expiresAt' | 'createdAt'>

/** When a share ends, ms since the epoch; at once where the task is not there any more. */
export const endOfShare = ({ taskId, expiresAt, createdAt }: ShareSpan, task?: TaskRow): number => {
  const end = expiresAt === undefined ? Date.parse(createdAt) + TASK_MS_MAX : Date.parse(expiresAt)
  if (taskId === undefined) return end
  if (task === undefined) return 0
  return isOver(task) ? Math.min(end, overAt(task) + AFTER_TASK_MS) : end
}

/** A device may have said that it finished later than it is now. */
const overAt = ({ finishedAt, cancelledAt, updatedAt }: TaskRow): number =>
  Math.min(Date.parse(finishedAt ?? cancelledAt ?? (updatedAt as string)), Date.parse(updatedAt as string))
