import type { UserCaller } from '../../kernel/caller.ts'
import type { AttachedFile, FileHolder } from '../../kit/files/attached-file.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'

export interface FoundAttachment {
  holder: FileHolder
  file: AttachedFile
  /** Its place in the holder: the id of a component, the name of a field. */
  place: { [member: string]: string }
}

export interface FileHolders {
  permissions: { view: string; edit: string }
  /** Undefined if no visible record has the file. @throws Failure forbidden for a field that the role hides */
  find(caller: UserCaller, fileId: string, isRead: boolean): Promise<FoundAttachment | undefined>
  /** @throws Failure like writes of the record */
  detach(origin: WriteOrigin, found: FoundAttachment): Promise<Written>
}
