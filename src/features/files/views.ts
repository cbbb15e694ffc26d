import type { UserCaller } from '../../kernel/caller.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import type { AttachedFile, FileHolder } from '../../kit/files/attached-file.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'

/** A file that was found with what it is attached to. */
export interface FoundAttachment {
  holder: FileHolder
  file: AttachedFile
  /** Where it stands: the id of a component, the name of a field. */
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


/** What routes answer of a file that is attached to something. */
export const fileSchema = (title: string, place: readonly [owner: string, member: string]) =>
  answered(title, {
    _id: UUID,
    name: { type: 'string', description: 'As its sender called it.' },
    contentType: { type: 'string', description: 'The media type that its bytes have.' },
    size: { type: 'integer', minimum: 1, description: 'Bytes.' },
    [place[0]]: UUID,
    [place[1]]: { type: 'string' },
    createdAt: DATE_TIME,
  })

export const shownFile = (
  { _id, name, contentType, size, createdAt }: AttachedFile,
  place: { [member: string]: string },
): { [member: string]: unknown } => ({ _id, name, contentType, size, ...place, createdAt })

export const FILE_EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
  name: 'receipt.jpg',
  contentType: 'image/jpeg',
  size: 48213,
  createdAt: '2026-01-01T08:00:00.000Z',
}
