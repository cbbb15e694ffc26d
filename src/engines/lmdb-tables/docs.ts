import type { Transaction } from 'lmdb'
import { type TableEnvironment, unpack } from './layout.ts'
import { behindScalar } from './packed-values.ts'

export type DocMember = string | number | null

/** `get` of a database whose bytes are valid until the next one. */
interface FastGet {
  getBinaryFast(key: Uint8Array, options: { transaction: Transaction }): Buffer | undefined
}

/**
 * Reads `docs` of one space on one snapshot: of each only the requested members, as a question looks at thousands. They
 * are MessagePack arrays of texts, numbers and nil.
 */
export class DocReader {
  private readonly docs: FastGet
  private readonly options: { transaction: Transaction }
  private readonly key = Buffer.alloc(12)
  private bytes: Buffer | undefined

  constructor({ docs }: TableEnvironment, transaction: Transaction, space: Buffer) {
    this.docs = docs as unknown as FastGet
    this.options = { transaction }
    this.key.set(space)
  }

  /** The members at these places, which rise; undefined where there is no such row. */
  read(no: number, places: readonly number[]): DocMember[] | undefined {
    this.key.writeUInt32BE(no, 8)
    const bytes = this.docs.getBinaryFast(this.key, this.options)
    this.bytes = bytes
    return bytes === undefined ? undefined : membersOf(bytes, places)
  }

  /** The id of the row read last: most are only looked at. Call it before anything else is read. */
  readonly id = (): string => membersOf(this.bytes as Buffer, ID_PLACE)[0] as string
}

const ID_PLACE = [0]

const ARRAY_16 = 0xdc
const NIL = 0xc0

const membersOf = (bytes: Buffer, places: readonly number[]): DocMember[] => {
  const members: DocMember[] = []
  let [at, place] = [bytes[0] === ARRAY_16 ? 3 : 1, 0]
  for (const wanted of places) {
    for (; place < wanted && at > 0; place += 1) at = behindScalar(bytes, at)
    const end = at > 0 ? behindScalar(bytes, at) : -1
    if (end < 0 || end > bytes.length) return unpackedMembers(bytes, places)
    members.push(memberIn(bytes, at, end))
  }
  return members
}

/** For a doc that lacks some of them, or is packed otherwise: very long texts. */
const unpackedMembers = (bytes: Buffer, places: readonly number[]): DocMember[] => {
  const doc = unpack<DocMember[]>(Buffer.from(bytes.subarray(0, bytes.length)))
  return places.map((place) => doc[place] ?? null)
}

const memberIn = (bytes: Buffer, at: number, end: number): DocMember => {
  const kind = bytes[at]
  if (kind < 0x80) return kind
  if (kind >= 0xe0) return kind - 0x100
  if (kind === NIL) return null
  if (kind < 0xc0) return bytes.toString('utf8', at + 1, end)
  if (kind === 0xd9) return bytes.toString('utf8', at + 2, end)
  if (kind === 0xda) return bytes.toString('utf8', at + 3, end)
  if (kind === 0xcb) return bytes.readDoubleBE(at + 1)
  if (kind === 0xca) return bytes.readFloatBE(at + 1)
  return kind < 0xd0 ? bytes.readUIntBE(at + 1, end - at - 1) : bytes.readIntBE(at + 1, end - at - 1)
}
