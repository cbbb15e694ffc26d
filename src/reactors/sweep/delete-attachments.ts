import type { FileStore } from '../../engines/file-store.ts'
import { RECORD, RECORD_STREAMS } from '../../features/data/events.ts'
import { TASK, TASK_STREAMS } from '../../features/tasks/views.ts'
import { categoryOf, decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { filesOf, keysOf, uploadKey } from '../../kit/files/attached-file.ts'
import { idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { Services } from '../../kit/services.ts'

export const DELETE_ATTACHMENTS = 'delete-attachments'

type DeleteServices = Omit<FollowerServices, 'log'> & Pick<Services, 'log' | 'tables' | 'files'>

/** Deletes the files of deleted or erased tasks and records. Late files are swept (`sweep-files.ts`). */
export const deleteAttachments = (services: DeleteServices): Follower =>
  new Follower(services, {
    name: DELETE_ATTACHMENTS,
    source: { prefixes: [TASK_STREAMS, RECORD_STREAMS] },
    handle: async ({ events }, signal) => {
      const deleted = events.filter(({ type }) => type === TASK.deleted || type === RECORD.deleted)
      if (deleted.length === 0) return undefined
      for (const event of deleted) if (!signal.aborted) await deleteFilesOf(services.files, event)
      return []
    },
  }).start(services.tables)

const deleteFilesOf = async (store: Pick<FileStore, 'list' | 'delete'>, event: RecordedEvent): Promise<void> => {
  const { organizationId, values } = decodeJson<ResourceData>(event.data)
  const holder = { noun: categoryOf(event.stream), organizationId, id: idOfStream(event.stream) }
  const isErased = Object.keys(values).length === 0
  if (!isErased) for (const { upload } of filesOf(values)) await store.delete(uploadKey(holder, upload))
  // Its list of files is erased with it: the store is asked.
  else for await (const { key } of store.list(keysOf(holder))) await store.delete(key)
}
