import { linkOfRun } from '../../../features/shares/run-link.ts'
import { PERMISSIONS } from '../../../features/shares/share.ts'
import { followUrl } from '../../../features/shares/views.ts'
import { EVENT_DATA_TYPES } from '../../../features/automations/events.ts'
import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import type { Work } from './action.ts'
import { type InsideServices, NotForEditor, originOf } from './inside.ts'

/** Path in texts about a task: a link to follow it, which is made together with the text. */
const PATH = 'task.followUrl'

const named = (text: unknown): boolean => typeof text === 'string' && /\{\{[^}]*followUrl/.test(text)

export const namesFollowUrl = ({ subject, text }: Details): boolean => named(subject) || named(text)

/** As `pathFault` of the context, for texts. */
export const textPathFault =
  ({ event, editor, pathFault }: DetailsContext) =>
  (path: string): string | undefined => {
    if (path !== PATH || EVENT_DATA_TYPES[event] !== 'task') return pathFault(path)
    return editor.permissions.has(PERMISSIONS.task) ? undefined : `takes the permission ${PERMISSIONS.task}`
  }

/** The work with the link of its run, where its texts name it. @throws NotForEditor, Failure quota */
export const withFollowUrl = async (services: InsideServices & { publicUrl: string }, work: Work): Promise<Work> => {
  if (!namesFollowUrl(work.details)) return work
  if (!work.editor.permissions.has(PERMISSIONS.task)) throw new NotForEditor()
  const { run } = work
  return linked(work, await linkOfRun(services, originOf(services, work), run.trigger.subject.id, run.runId))
}

/** The same for a dry run, which makes no share. */
export const withSampleUrl = ({ publicUrl }: { publicUrl: string }, work: Work): Work =>
  namesFollowUrl(work.details) ? linked(work, followUrl(publicUrl, 'sample')) : work

const linked = (work: Work, link: string | undefined): Work => {
  const task = { ...(work.data.task as object), followUrl: link }
  return { ...work, data: { ...work.data, task }, ...(link !== undefined && { link }) }
}
