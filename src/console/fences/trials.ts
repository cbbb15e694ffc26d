// Geofences of trials, remembered by this browser until they are deleted: a tab may be closed in the middle of one.
import { remove } from '../api/change.ts'
import { ask, get, orNothing } from '../api/client.ts'
import { session } from '../app/session.svelte.ts'

const KEY = 'waymark-trials'
const AGAIN_MS = 5_000
/** Pauses between attempts to delete are each twice as long as the last, up to this. */
const AGAIN_MS_MAX = 300_000
/** No trial takes longer: a tab that is still there has ended it. */
const TRIAL_MS_MAX = 15 * 60_000

interface Trial {
  id: string
  userId: string
  organizationId: string
  begunAt: number
  /** The page that began it is closed. */
  isLeft?: boolean
}

/** Trials of this page. */
const own = new Set<string>()

export const beginTrial = (id: string): void => {
  own.add(id)
  store([...stored(), { id, ...whose(), begunAt: Date.now() }])
}

/** Deletes its geofence, also where its answer or the request was lost. */
export const endTrial = (id: string, againMs = AGAIN_MS): Promise<void> =>
  remove(pathOf(id)).then(
    () => forget(id),
    () => void setTimeout(() => void endTrial(id, Math.min(2 * againMs, AGAIN_MS_MAX)), againMs),
  )

/** Ends trials of this person and organization that closed pages of this browser have left behind. */
export const endLeftTrials = (): void => {
  const { userId, organizationId } = whose()
  for (const trial of stored()) {
    if (own.has(trial.id) || trial.userId !== userId || trial.organizationId !== organizationId) continue
    // Another tab may be in the middle of it.
    const waitMs = trial.isLeft ? 0 : trial.begunAt + TRIAL_MS_MAX - Date.now()
    if (waitMs > 0) setTimeout(() => endLeft(trial.id), waitMs)
    else endLeft(trial.id)
  }
}

/** Where it fails, the next opening of the page tries again. */
const endLeft = (id: string): void => void endUnused(id).catch(() => undefined)

const endUnused = async (id: string): Promise<void> => {
  if (!stored().some((trial) => trial.id === id)) return
  const stands = await orNothing(get(pathOf(id)), undefined)
  // Somebody has put it to use.
  if (stands?.data.isActive !== true) await remove(pathOf(id))
  forget(id)
}

addEventListener('pagehide', () => {
  store(stored().map((trial) => (own.has(trial.id) ? { ...trial, isLeft: true } : trial)))
  for (const id of own) void ask('DELETE', pathOf(id), { isKeptAlive: true }).catch(() => undefined)
})

const whose = (): { userId: string; organizationId: string } => ({
  userId: session.user?._id ?? '',
  organizationId: session.organization?.organizationId ?? '',
})

const pathOf = (id: string): string => `/geofence/${id}`

const forget = (id: string): void => {
  own.delete(id)
  store(stored().filter((trial) => trial.id !== id))
}

const stored = (): Trial[] => {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]')
  } catch {
    return []
  }
}

const store = (trials: readonly Trial[]): void => {
  try {
    if (trials.length === 0) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, JSON.stringify(trials))
  } catch (error) {
    if (!(error instanceof DOMException)) throw error
  }
}
