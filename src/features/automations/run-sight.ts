import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { Subject } from './events.ts'

interface Watcher {
  readonly wanted: { trackerIds: unknown; hubId: string | undefined; teamId: string | undefined }
  readonly caller: UserCaller
}

interface RunSight {
  trackerId?: string
  isFor?(watcher: Watcher): boolean
}

/** Who is told of a run: of a tracker's who sees the tracker, of others whoever lists them by the hub of that time. */
export const sightOfRun = (subject: Subject): RunSight =>
  subject.type === 'tracker' ? { trackerId: subject.id } : { isFor: (watcher) => isFor(watcher, subject) }

const isFor = ({ wanted, caller }: Watcher, { type, hubId }: Subject): boolean => {
  if (wanted.trackerIds !== undefined || wanted.teamId !== undefined) return false
  if (wanted.hubId !== undefined && wanted.hubId !== hubId) return false
  if (caller.hubIds === 'all') return true
  if (type === 'record') return caller.permissions.has('view/data')
  // Users without `dispatch/task` see single tasks only: those of their own, whom an event does not name.
  const permission = type === 'task' ? 'dispatch/task' : 'view/routing'
  return hubId !== undefined && seesHubs(caller, [hubId]) && caller.permissions.has(permission)
}
