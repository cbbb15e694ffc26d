import { timingSafeEqual } from 'node:crypto'
import type { TableStore } from '../../engines/table-store.ts'
import type { IngestKeyCaller, TrackerCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { DIRECTORY } from '../../kit/consumers/projection.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { hashOf, parseDeviceKey } from './device-key.ts'
import { DEVICE_KEYS, GATEWAY_KEYS, type DeviceKeyRow } from './views.ts'

const KEYS_MAX = 100_000
const CHANGED_MAX = 10_000

type Kind = DeviceKeyRow['kind']

const TABLES: { [kind in Kind]: string } = { tracker: DEVICE_KEYS.name, ingestKey: GATEWAY_KEYS.name }
const KINDS = Object.keys(TABLES) as Kind[]

type KeyTables = Pick<TableStore, 'get' | 'checkpoint'>

/** State of a key in the log; null for deleted. */
interface LoggedKey {
  row: DeviceKeyRow | null
  position: number
}

/** Verifies device and ingest keys: from the table, and from the log if that is ahead of the table. */
export class DeviceAuthenticator {
  private readonly tables: KeyTables
  private readonly keyring: Keyring
  private readonly rows = new Map<string, DeviceKeyRow>()
  /** Last logged state of keys that this process has heard of; the table may not have it yet, or have a later one. */
  private readonly changed = new Map<string, LoggedKey>()

  constructor(tables: KeyTables, keyring: Keyring) {
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

  /** Notes that the log has another key of that kind for the id, or none, at that position. */
  note(kind: Kind, id: string, row: DeviceKeyRow | null, position: number): void {
    const name = nameOf(kind, id)
    this.rows.delete(name)
    this.changed.delete(name)
    this.changed.set(name, { row, position })
    if (this.changed.size > CHANGED_MAX) this.changed.delete(this.changed.keys().next().value as string)
  }

  /** Cached keys come first: most need no query of a table. Another process may have changed one that differs. */
  private async *rowsOf(id: string): AsyncGenerator<DeviceKeyRow> {
    const known = KINDS.map((kind) => this.knownRow(kind, id))
    for (const row of known) if (row != null) yield row
    for (const kind of KINDS) {
      const row = await this.read(kind, id)
      if (row !== undefined) yield row
    }
  }

  /** Undefined if the table decides; null if the log says that there is none. */
  private knownRow(kind: Kind, id: string): DeviceKeyRow | null | undefined {
    const name = nameOf(kind, id)
    const noted = this.changed.get(name)
    return noted === undefined ? this.rows.get(name) : noted.row
  }

  /** The row of the table, unless the log is ahead of it. */
  private async read(kind: Kind, id: string): Promise<DeviceKeyRow | undefined> {
    const name = nameOf(kind, id)
    const noted = this.changed.get(name)
    if (noted !== undefined && !(await this.isStored(noted))) return undefined
    const row = await this.tables.get<DeviceKeyRow>(TABLES[kind], NO_ORGANIZATION, id)
    const meanwhile = this.changed.get(name)
    if (meanwhile !== noted) return meanwhile?.row ?? undefined
    if (row === undefined || noted !== undefined) return row
    this.rows.set(name, row)
    if (this.rows.size > KEYS_MAX) this.rows.delete(this.rows.keys().next().value as string)
    return row
  }

  private async isStored({ position }: LoggedKey): Promise<boolean> {
    return ((await this.tables.checkpoint(DIRECTORY))?.all ?? -1) >= position
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
