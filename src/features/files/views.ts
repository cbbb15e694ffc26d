import type { UserCaller } from '../../kernel/caller.ts'
import type { AttachedFile, FileHolder } from '../../kit/files/attached-file.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'

/** A file that was found with what it is attached to. */
export interface FoundAttachment {
  holder: FileHolder
  file: AttachedFile
  /** Its place: the id of a component, the name of a field. */
  place: { [member: string]: string }
}

/** A kind of things that files are attached to. */
export interface FileHolders {
  permissions: { view: string; edit: string }
  /** Undefined where nothing of this kind that the caller sees has it. @throws Failure forbidden for a field that the role hides */
  find(caller: UserCaller, fileId: string, isRead: boolean): Promise<FoundAttachment | undefined>
  /** @throws Failure as writes of the thing do */
  detach(origin: WriteOrigin, found: FoundAttachment): Promise<Written>
}
