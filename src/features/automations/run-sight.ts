import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { seesTask, type TaskValues } from '../tasks/views.ts'
import type { Subject } from './events.ts'

interface Watcher {
  readonly wanted: { trackerIds: unknown; hubId: string | undefined; teamId: string | undefined }
  readonly caller: UserCaller
}

interface RunSight {
  trackerId?: string
  isFor?(watcher: Watcher): boolean
}

/**
 * Who is told of a run: of a tracker's who sees the tracker, of others whoever lists them by the hub of that time. `task`:
 * the subject as it is now, if it is a task; whoever sees only their own is told of it while it is theirs.
 */
export const sightOfRun = (subject: Subject, task?: TaskValues): RunSight =>
  subject.type === 'tracker' ? { trackerId: subject.id } : { isFor: (watcher) => isFor(watcher, subject, task) }

const isFor = ({ wanted, caller }: Watcher, { type, hubId }: Subject, task: TaskValues | undefined): boolean => {
  if (wanted.trackerIds !== undefined || wanted.teamId !== undefined) return false
  if (wanted.hubId !== undefined && wanted.hubId !== hubId) return false
  if (caller.hubIds === 'all') return true
  if (type === 'record') return caller.permissions.has('view/data')
  if (hubId === undefined || !seesHubs(caller, [hubId])) return false
  if (type !== 'task') return caller.permissions.has('view/routing')
  if (caller.permissions.has('dispatch/task')) return true
  return task !== undefined && seesHubs(caller, [task.hubId]) && seesTask(caller, task)
}
