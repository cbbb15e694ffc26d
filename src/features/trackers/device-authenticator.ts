import { timingSafeEqual } from 'node:crypto'
import type { TableStore } from '../../engines/table-store.ts'
import type { IngestKeyCaller, TrackerCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { hashOf, parseDeviceKey } from './device-key.ts'
import { DEVICE_KEYS, GATEWAY_KEYS, type DeviceKeyRow } from './views.ts'

const KEYS_MAX = 100_000
const CHANGED_MAX = 10_000

type Kind = DeviceKeyRow['kind']

const TABLES: { [kind in Kind]: string } = { tracker: DEVICE_KEYS.name, ingestKey: GATEWAY_KEYS.name }
const KINDS = Object.keys(TABLES) as Kind[]

/** Verifies device and ingest keys: from the table, and from the log if that is ahead of the table. */
export class DeviceAuthenticator {
  private readonly tables: Pick<TableStore, 'get'>
  private readonly keyring: Keyring
  private readonly rows = new Map<string, DeviceKeyRow>()
  /** Last logged state of keys, null for deleted; the table may not have it yet. */
  private readonly changed = new Map<string, DeviceKeyRow | null>()

  constructor(tables: Pick<TableStore, 'get'>, keyring: Keyring) {
    this.tables = tables
    this.keyring = keyring
  }

  /** Whether a credential has the form of a device or ingest key; a user's token never has. */
  takes(token: string): boolean {
    return parseDeviceKey(token) !== undefined
  }

  /** @throws Failure unauthenticated, engine_down */
  async authenticate(token: string): Promise<TrackerCaller | IngestKeyCaller> {
    const key = parseDeviceKey(token)
    if (key === undefined) throw new Failure('unauthenticated')
    // An unknown id costs the same hash as a wrong secret.
    const hash = hashOf(this.keyring, key.id, key.secret)
    // A tracker and an ingest key, possibly of two organizations, can share an id: the secret distinguishes them.
    for await (const row of this.rowsOf(key.id)) if (isSame(hash, row.keyHash)) return callerOf(key.id, row)
    throw new Failure('unauthenticated')
  }

  /** Notes that the log has another key of that kind for the id, or none. */
  note(kind: Kind, id: string, row: DeviceKeyRow | null): void {
    const name = nameOf(kind, id)
    this.rows.delete(name)
    this.changed.delete(name)
    this.changed.set(name, row)
    if (this.changed.size > CHANGED_MAX) this.changed.delete(this.changed.keys().next().value as string)
  }

  /** Cached keys come first: most need no query of a table. */
  private async *rowsOf(id: string): AsyncGenerator<DeviceKeyRow> {
    const known = KINDS.map((kind) => this.knownRow(kind, id))
    for (const row of known) if (row != null) yield row
    for (const [i, kind] of KINDS.entries()) {
      const row = known[i] === undefined ? await this.read(kind, id) : undefined
      if (row !== undefined) yield row
    }
  }

  /** Undefined if the table decides; null if the log says that there is none. */
  private knownRow(kind: Kind, id: string): DeviceKeyRow | null | undefined {
    const name = nameOf(kind, id)
    const noted = this.changed.get(name)
    return noted === undefined ? this.rows.get(name) : noted
  }

  private async read(kind: Kind, id: string): Promise<DeviceKeyRow | undefined> {
    const row = await this.tables.get<DeviceKeyRow>(TABLES[kind], NO_ORGANIZATION, id)
    const name = nameOf(kind, id)
    const meanwhile = this.changed.get(name)
    if (row === undefined || meanwhile !== undefined) return meanwhile ?? undefined
    this.rows.set(name, row)
    if (this.rows.size > KEYS_MAX) this.rows.delete(this.rows.keys().next().value as string)
    return row
  }
}

const nameOf = (kind: Kind, id: string): string => `${kind} ${id}`

const callerOf = (id: string, row: DeviceKeyRow): TrackerCaller | IngestKeyCaller => {
  const { organizationId, kind, autoCreate, hubId } = row
  if (kind === 'tracker') return { kind, organizationId, trackerId: id }
  return { kind, organizationId, keyId: id, autoCreate: autoCreate === true, ...(hubId !== undefined && { hubId }) }
}

const isSame = (hash: Buffer, kept: string): boolean => {
  const other = Buffer.from(kept, 'base64url')
  return other.length === hash.length && timingSafeEqual(hash, other)
}
