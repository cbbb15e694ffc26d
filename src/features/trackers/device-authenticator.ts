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

/** Knows device and ingest keys: from the table, and from the log where that is ahead of the table. */
export class DeviceAuthenticator {
  private readonly tables: Pick<TableStore, 'get'>
  private readonly keyring: Keyring
  private readonly rows = new Map<string, DeviceKeyRow>()
  /** What the log said last of a key, null for deleted; the table may not have it yet. */
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
    const row = key === undefined ? undefined : await this.rowOf(key.id)
    // An unknown id costs the same hash as a wrong secret.
    const hash = key === undefined ? undefined : hashOf(this.keyring, key.id, key.secret)
    if (key === undefined || hash === undefined || row === undefined || !isSame(hash, row.keyHash))
      throw new Failure('unauthenticated')
    const { organizationId, kind, autoCreate, hubId } = row
    if (kind === 'tracker') return { kind, organizationId, trackerId: key.id }
    return {
      kind,
      organizationId,
      keyId: key.id,
      autoCreate: autoCreate === true,
      ...(hubId !== undefined && { hubId }),
    }
  }

  /** The log has another key for the id, or none. */
  note(id: string, row: DeviceKeyRow | null): void {
    this.rows.delete(id)
    this.changed.delete(id)
    this.changed.set(id, row)
    if (this.changed.size > CHANGED_MAX) this.changed.delete(this.changed.keys().next().value as string)
  }

  private async rowOf(id: string): Promise<DeviceKeyRow | undefined> {
    const noted = this.changed.get(id)
    if (noted !== undefined) return noted ?? undefined
    const known = this.rows.get(id)
    if (known !== undefined) return known
    const row =
      (await this.tables.get<DeviceKeyRow>(DEVICE_KEYS.name, NO_ORGANIZATION, id)) ??
      (await this.tables.get<DeviceKeyRow>(GATEWAY_KEYS.name, NO_ORGANIZATION, id))
    const meanwhile = this.changed.get(id)
    if (row === undefined || meanwhile !== undefined) return meanwhile ?? undefined
    this.rows.set(id, row)
    if (this.rows.size > KEYS_MAX) this.rows.delete(this.rows.keys().next().value as string)
    return row
  }
}

const isSame = (hash: Buffer, kept: string): boolean => {
  const other = Buffer.from(kept, 'base64url')
  return other.length === hash.length && timingSafeEqual(hash, other)
}
