import { breathe } from '../../kernel/breath.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { claimOwner, uniqueClaim } from '../../kit/commands/unique-claim.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { ABSENT } from '../../kit/resource/decider.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { StoredField } from './fields.ts'
import { claimKey, uniqueKey, uniqueTermOf } from './record-index.ts'
import { type DataTypeRow, type RecordRow, RECORDS, valueIn } from './views.ts'

/** Records that the index has for primary keys, by `uniqueKey`; undefined for a key without a record. */
export type IndexedKeys = ReadonlyMap<string, string | undefined>

/** Most keys in one query to the index: 200 took an embedded one 8 ms, and of more it reads all rows. */
const KEYS_AT_ONCE = 50

export class RecordKeys {
  private readonly services: ResourceServices
  private readonly writer: ResourceWriter

  constructor(services: ResourceServices, writer: ResourceWriter) {
    this.services = services
    this.writer = writer
  }

  /** Records that the index has for many primary keys, except for keys with too many matches. */
  async indexed(organizationId: string, type: DataTypeRow, keys: readonly Json[]): Promise<IndexedKeys> {
    const found = new Map<string, string | undefined>()
    const field = primaryField(type)
    if (field === undefined) return found
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      await breathe()
      const asked = keys.slice(at, at + KEYS_AT_ONCE)
      const where = { terms: asked.map((key) => uniqueTermOf(type._id, field, key)) }
      const question = { where, limit: 2 * KEYS_AT_ONCE, once: true } as const
      const { rows, next } = await this.services.tables.find<RecordRow>(RECORDS, organizationId, question)
      if (next !== null) continue
      for (const key of asked) found.set(uniqueKey(key), undefined)
      for (const { id, row } of rows) found.set(uniqueKey(row.values[field._id]), id)
    }
    return found
  }

  /** Record with this primary key, even if not indexed yet; undefined if there is none. */
  async idOf(organizationId: string, type: DataTypeRow, key: Json, indexed?: IndexedKeys): Promise<string | undefined> {
    const { tables, log, keyring } = this.services
    const field = primaryField(type)
    if (field === undefined) return undefined
    const has = async (id: string | undefined): Promise<boolean> => {
      const { state } = id === undefined ? { state: ABSENT } : await this.writer.load(id)
      const value = state.status === 'live' ? valueIn(state.values.values as JsonObject, field._id) : undefined
      return value !== undefined && uniqueKey(value) === uniqueKey(key)
    }
    const where = { terms: uniqueTermOf(type._id, field, key) }
    const inIndex = indexed?.has(uniqueKey(key))
      ? indexed.get(uniqueKey(key))
      : (await tables.find(RECORDS, organizationId, { where, limit: 1, once: true })).rows[0]?.id
    if (await has(inIndex)) return inIndex
    const claim = uniqueClaim(keyring, 'data', claimKey(type, field), organizationId, uniqueKey(key))
    const claimant = await claimOwner(log, claim)
    return (await has(claimant)) ? claimant : undefined
  }
}

const primaryField = ({ fields, primaryKey }: DataTypeRow): StoredField | undefined =>
  fields.find(({ name }) => name === primaryKey)
