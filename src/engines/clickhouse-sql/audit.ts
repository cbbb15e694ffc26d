import { encodeNativeBlock, type NativeColumn } from './native-block.ts'

export interface AuditEntry {
  organizationId: string
  /** Time at which it was logged, ms since the epoch. */
  at: number
  _id: string
  actorType: string
  actorId: string
  action: string
  noun: string
  resourceId: string
  /** Hubs of the event's subject; none for a subject without hub. */
  hubIds: readonly string[]
  stream: string
  revision: number
  /** Position in the whole log: orders events logged in the same millisecond. */
  position: number
}

export const auditBlock = (entries: readonly AuditEntry[]): Uint8Array => {
  const texts = (
    name: 'organizationId' | '_id' | 'actorId' | 'resourceId' | 'stream' | 'actorType' | 'action' | 'noun',
  ): NativeColumn => ({ name, type: 'String', values: entries.map((entry) => entry[name]) })
  const columns: NativeColumn[] = [
    texts('organizationId'),
    { name: 'at', type: "DateTime64(3, 'UTC')", values: BigInt64Array.from(entries, ({ at }) => BigInt(at)) },
    texts('_id'),
    texts('actorType'),
    texts('actorId'),
    texts('action'),
    texts('noun'),
    texts('resourceId'),
    { name: 'hubIds', type: 'Array(String)', values: { lists: entries.map(({ hubIds }) => hubIds) } },
    texts('stream'),
    { name: 'revision', type: 'UInt64', values: BigUint64Array.from(entries, ({ revision }) => BigInt(revision)) },
    { name: 'place', type: 'String', values: entries.map(({ position }) => position.toString(16).padStart(16, '0')) },
  ]
  return encodeNativeBlock(columns, entries.length)
}
