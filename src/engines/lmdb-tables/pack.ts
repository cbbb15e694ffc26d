import { breathe } from '../../kernel/breath.ts'
import type { RowChange } from '../../kernel/table.ts'
import type { PackedChange } from './jobs.ts'
import { idBytes, pack } from './layout.ts'

const PART_CHANGES = 64

/** Changes for the writer: packed in parts, over as many turns of the event loop as that takes. */
export const packParts = async (changes: readonly RowChange[]): Promise<Uint8Array<ArrayBuffer>[]> => {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for (let start = 0; start < changes.length; start += PART_CHANGES) {
    await breathe()
    parts.push(ownBytes(pack(changes.slice(start, start + PART_CHANGES).map(packedChange))))
  }
  return parts
}

export const packOne = (change: RowChange): Uint8Array<ArrayBuffer> => ownBytes(pack(packedChange(change)))

const packedChange = ({ table, scope, id, row, expiresAt }: RowChange): PackedChange => {
  idBytes(id)
  return [
    table,
    scope,
    id,
    row === null ? null : pack(row),
    expiresAt === undefined ? 0 : Math.max(1, Math.floor(expiresAt)),
  ]
}

/** A copy that owns its memory, so that it can be handed to the other thread. */
const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => {
  const copy = new Uint8Array(bytes.byteLength)
  copy.set(bytes)
  return copy
}
