import { assertNoFaults, Failure, type FieldError, invalid, taken } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { actorOf } from '../../kit/http/request-context.ts'
import type { ResourceServices, UniqueValue } from '../../kit/resource/declaration.ts'
import { createdId } from '../../kit/resource/created-id.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import { assertExists, NAMES_NOTHING } from '../../kit/resource/references.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { Change, Deletion, Making, ResourceWrites, WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { filesFault, isEmpty, keptValue, valueFault } from '../../kit/values/value-type.ts'
import { type AttachedFile, assertFits, assertRoom, filesOf, withNamedFiles } from '../../kit/files/attached-file.ts'
import type { StoredField } from './fields.ts'
import { claimKey, isUnique, uniqueKey, uniqueTermOf } from './record-index.ts'
import { RECORD_STREAMS } from './events.ts'
import { chosen, type Keyed, keyed, withDefaults } from './keyed-values.ts'
import { RecordKeys } from './record-keys.ts'
import { record } from './record.ts'
import { DATA_TYPES, hiddenOf, RECORDS, type DataTypeRow, type RecordRow, valueIn } from './views.ts'

/** Context by which a write is validated. */
interface Judged {
  /** Previous values; absent for a create. */
  before?: JsonObject
  /** Fields that the write does not change. */
  left?: ReadonlySet<StoredField>
  /** Field whose value was just looked up in the index and not found. */
  asked?: string
}

/** Writes of records: clients send values by name, storage keys them by field. */
export class RecordWriter implements ResourceWrites {
  readonly keys: RecordKeys
  private readonly services: ResourceServices
  private readonly writer: ResourceWriter

  constructor(services: ResourceServices) {
    this.services = services
    this.writer = record.writer(services)
    this.keys = new RecordKeys(services, this.writer)
  }

  /**
   * @param asked field whose value was just looked up in the index and not found
   * @throws Failure invalid with every faulty field, key_in_use.
   */
  create(origin: WriteOrigin, body: JsonObject, asked?: string): Promise<Written> {
    const { id, isDrawn } = createdId(record.declaration, origin, body)
    const making = async (): Promise<Making> => {
      const type = await this.typeOf(origin.organizationId, body.dataTypeId as string)
      await this.assertNoGuess(origin, type, id, body)
      const sent = keyed(type, body.values as JsonObject)
      const { values, ...extra } = await this.checked(origin.organizationId, type, id, withDefaults(type, sent), {
        asked,
      })
      return { body: { dataTypeId: type._id, values }, extra }
    }
    return this.writer.make(origin, id, making, isDrawn)
  }

  /**
   * A repeated create gets the same answer. Callers whose role hides a field may repeat only their own creates:
   * repeating others' would confirm guessed values. @throws Failure conflict
   */
  private async assertNoGuess(
    { caller }: WriteOrigin,
    type: DataTypeRow,
    id: string,
    { _id }: JsonObject,
  ): Promise<void> {
    if (_id === undefined || caller === undefined || hiddenOf(caller, type).size === 0) return
    const [first] = await this.services.log.read(RECORD_STREAMS + id, 0, 1)
    if (first !== undefined && first.metadata.actor !== actorOf(caller)) throw taken('/_id', 'conflict')
  }

  /**
   * A field that the caller's role hides keeps its value if a PUT leaves it out. Unchanged values are not validated: a
   * record that its type no longer allows can be corrected one field after another.
   * @throws Failure as `create`, not_found, stale_version
   */
  change(origin: WriteOrigin, { id, kind, body, expectedVersion }: Change): Promise<Written> {
    return this.writer.update(
      origin,
      id,
      async (before) => {
        const { organizationId, caller } = origin
        const { dataTypeId = before.dataTypeId } = body
        if ((dataTypeId as string | null)?.toLowerCase() !== before.dataTypeId)
          throw invalid('/dataTypeId', 'cannot be changed')
        const type = await this.typeOf(organizationId, before.dataTypeId as string)
        const own = before.values as JsonObject
        const said = keyed(type, (body.values ?? {}) as JsonObject)
        const sent = said.kept
        const isPatch = kind === 'amend' && body.values !== null
        const hidden = caller === undefined ? new Set<string>() : hiddenOf(caller, type)
        const left = type.fields.filter(({ _id, name }) => !Object.hasOwn(sent, _id) && (isPatch || hidden.has(name)))
        const merged: Keyed = isPatch
          ? { ...said, kept: mergePatch(chosen(own, type.fields), sent) }
          : withDefaults(type, { ...said, kept: { ...chosen(own, left), ...sent } }, left)
        const { isDangling: _was, ...others } = before
        const checked = await this.checked(organizationId, type, id, merged, { before, left: new Set(left) })
        return withNamedFiles({ ...others, ...checked }, Object.values(checked.values).flat())
      },
      expectedVersion,
    )
  }

  /** @throws Failure invalid with `/field`, not_found */
  attach(origin: WriteOrigin, id: string, fieldName: string, file: AttachedFile): Promise<Written> {
    return this.writer.update(origin, id, async (before) => {
      const files = filesOf(before)
      if (files.some(({ _id }) => _id === file._id)) return before
      const type = await this.typeOf(origin.organizationId, before.dataTypeId as string)
      const field = fileField(type, fieldName)
      const values = before.values as JsonObject
      const ids = (valueIn(values, field._id) ?? []) as string[]
      assertFits(field, ids.length, file, '/field')
      assertRoom(files)
      return {
        ...(await this.asListed(origin, id, before)),
        values: { ...values, [field._id]: [...ids, file._id] },
        files: [...files, file] as unknown as Json,
      }
    })
  }

  /** @throws Failure conflict for the last file of a required field, not_found */
  detach(origin: WriteOrigin, id: string, fileId: string): Promise<Written> {
    return this.writer.update(origin, id, async (before) => {
      const type = await this.typeOf(origin.organizationId, before.dataTypeId as string)
      const without = (value: Json): Json => (Array.isArray(value) ? value.filter((one) => one !== fileId) : value)
      const own = before.values as JsonObject
      const left = Object.entries(own).map(([key, value]) => [key, without(value)] as const)
      const values = Object.fromEntries(left.filter(([, value]) => !isEmpty(value)))
      const emptied = type.fields.find(
        ({ _id, required }) => required === true && Object.hasOwn(own, _id) && !Object.hasOwn(values, _id),
      )
      if (emptied !== undefined)
        throw new Failure('conflict', {
          message: `It is the last file of ${emptied.name}, which is required: attach another one first.`,
          errors: [{ path: `/values/${emptied.name}`, message: 'is required' }],
        })
      return withNamedFiles({ ...(await this.asListed(origin, id, before)), values }, Object.values(values).flat())
    })
  }

  /** A check may have found dangling references: the record stays on that list. */
  private async asListed({ organizationId }: WriteOrigin, id: string, values: JsonObject): Promise<JsonObject> {
    const row = await this.services.tables.get<RecordRow>(RECORDS, organizationId, id)
    return row?.isDangling === true ? { ...values, isDangling: true } : values
  }

  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    return this.writer.delete(origin, deletion)
  }

  /** Result of the same request for that id, if it was made before. */
  madeBefore(origin: WriteOrigin, id: string): Promise<Written | undefined> {
    return this.writer.madeBefore(origin, id)
  }

  private typeOf(organizationId: string, dataTypeId: string): Promise<DataTypeRow> {
    const { tables } = this.services
    return assertExists<DataTypeRow>(tables, DATA_TYPES, organizationId, dataTypeId.toLowerCase(), '/dataTypeId')
  }

  /** The values to store, with those derived from them. @throws Failure invalid, key_in_use */
  private async checked(
    organizationId: string,
    type: DataTypeRow,
    id: string,
    { kept: sent, faults: unknown }: Keyed,
    { before, left = new Set(), asked }: Judged,
  ): Promise<JsonObject & { values: JsonObject }> {
    const faults: FieldError[] = [...unknown]
    const values: JsonObject = {}
    const right: StoredField[] = []
    for (const field of type.fields) {
      const value = valueIn(sent, field._id)
      const fault = this.faultOf(type, field, value, before && valueIn(before.values as JsonObject, field._id))
      if (fault === undefined) right.push(field)
      else if (!left.has(field)) faults.push({ path: `/values/${field.name}`, message: fault })
      if (value === undefined || isEmpty(value)) continue
      values[field._id] = fault === undefined ? keptValue(field, value) : value
    }
    const judged = { ...type, fields: right }
    const { faults: nothing, ...references } = await this.references(judged, id, values, left)
    assertNoFaults([...faults, ...nothing])
    const uniques = await this.uniques(organizationId, judged, id, values, { before, left, asked })
    return { values, uniques: uniques as unknown as Json, ...references }
  }

  /** Values that this record claims. An unchanged value that another record also has stays shared. */
  private async uniques(
    organizationId: string,
    type: DataTypeRow,
    id: string,
    values: JsonObject,
    { before, left = new Set(), asked }: Judged,
  ): Promise<UniqueValue[]> {
    const held = (before?.uniques ?? []) as unknown as UniqueValue[]
    const uniques: UniqueValue[] = []
    for (const field of type.fields) {
      const value = valueIn(values, field._id)
      if (value === undefined || !isUnique(type, field)) continue
      const own = { key: claimKey(type, field), value: uniqueKey(value), field: `values/${field.name}` }
      const isHeld = left.has(field) && held.some(({ key, value: one }) => key === own.key && one === own.value)
      const isFree = isHeld || field.name === asked || !(await this.isTaken(organizationId, type, field, id, value))
      if (isFree) uniques.push(own)
      else if (!left.has(field)) throw taken(`/values/${field.name}`)
    }
    return uniques
  }

  private faultOf(
    { primaryKey }: DataTypeRow,
    field: StoredField,
    value: Json | undefined,
    old: Json | undefined,
  ): string | undefined {
    if (value !== undefined && !isEmpty(value)) return valueFault(field, value) ?? filesFault(field, value, old)
    // A file is attached to an existing record: until then the record is listed as invalid, from then on it has a file.
    const isYetToCome = field.type === 'file' && isEmpty(old)
    const isAsked = (field.required === true && !isYetToCome) || field.name === primaryKey
    return isAsked ? 'is required' : undefined
  }

  /** Checks that named records exist and have the field's type; a self-reference does not block a deletion. */
  private async references(
    { organizationId, fields }: DataTypeRow,
    id: string,
    values: JsonObject,
    left: ReadonlySet<StoredField>,
  ): Promise<{ recordIds: string[]; isDangling?: true; faults: FieldError[] }> {
    const named = fields.filter((field) => field.type === 'reference' && valueIn(values, field._id) !== undefined)
    if (named.length === 0) return { recordIds: [], faults: [] }
    const ids = named.map((field) => valueIn(values, field._id) as string)
    const rows = await this.services.tables.getMany<RecordRow>(RECORDS, organizationId, ids)
    const dangling = named.filter(({ dataTypeId }, i) => rows[i]?.dataTypeId !== dataTypeId)
    const faults = dangling
      .filter((field) => !left.has(field))
      .map(({ name }) => ({ path: `/values/${name}`, message: NAMES_NOTHING }))
    const recordIds = [...new Set(ids.filter((one, i) => one !== id && rows[i] !== undefined))]
    return { recordIds, ...(dangling.length > 0 && { isDangling: true }), faults }
  }

  /** Records written before a field became unique have no claim, so the index is asked too. */
  private async isTaken(
    organizationId: string,
    type: DataTypeRow,
    field: StoredField,
    id: string,
    value: Json,
  ): Promise<boolean> {
    const where = { terms: uniqueTermOf(type._id, field, value) }
    const { rows } = await this.services.tables.find(RECORDS, organizationId, { where, limit: 2, once: true })
    return rows.some((row) => row.id !== id)
  }
}

/** @throws Failure invalid with `/field` */
const fileField = (type: DataTypeRow, name: string) => {
  const field = type.fields.find((one) => one.name === name)
  if (field === undefined) throw invalid('/field', `is not a field of ${type.name}`)
  if (field.type !== 'file') throw invalid('/field', `is a ${field.type}: no files are attached to it`)
  return field
}
