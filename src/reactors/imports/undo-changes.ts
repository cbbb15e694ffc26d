import { isDeepStrictEqual } from 'node:util'
import { eventsOf } from '../../engines/event-log.ts'
import { RECORD_STREAMS } from '../../features/data/events.ts'
import { record } from '../../features/data/record.ts'
import { RecordWriter } from '../../features/data/record-writer.ts'
import { DATA_TYPES, type DataTypeRow, hiddenOf } from '../../features/data/views.ts'
import type { ImportType } from '../../features/imports/events.ts'
import { task } from '../../features/tasks/task.ts'
import { TaskWriter } from '../../features/tasks/task-writer.ts'
import { TASK_STREAMS } from '../../features/tasks/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { stateBy } from '../../kit/commands/handle-command.ts'
import type { ResourceDeclaration, ResourceServices } from '../../kit/resource/declaration.ts'
import { resourceDecider } from '../../kit/resource/decider.ts'
import { ResourceSecrets } from '../../kit/resource/secrets.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'

export interface Change {
  type: ImportType
  importId: string
  undoId: string
  /** Id of a record that existed before the import, or was made by an earlier row of it. */
  id: string
}

/** Nothing has to be done about records that the import made, which are removed as a whole, or left unchanged. */
export type ChangeUndone = 'undone' | 'nothing' | { kept: string }

/** Restores the values that an import changed, unless another writer has written to it since. */
export const undoChange = async (
  services: ResourceServices,
  origin: WriteOrigin,
  change: Change,
): Promise<ChangeUndone> => {
  const { id, type } = change
  const written = await writtenSince(services, change)
  if (written.first === undefined || written.first === 0) return 'nothing'
  if (written.isUndone) return 'undone'
  if (written.isByOthers) return { kept: `${id} was changed since` }
  const declaration = type === 'datasource' ? record.declaration : task.declaration
  const before = await valuesAt(services, declaration, id, written.first - 1)
  const after = await valuesAt(services, declaration, id, written.last)
  const expectedVersion = written.last + 1
  try {
    const body =
      type === 'datasource'
        ? await recordBody(services, origin, before, after)
        : patchBack(before, after, Object.keys(task.declaration.fields))
    const writer = type === 'datasource' ? new RecordWriter(services) : new TaskWriter(services)
    await writer.change(origin, { id, kind: 'amend', body, expectedVersion })
    return 'undone'
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    return { kept: `${id} stays as it is: ${error.message}` }
  }
}

interface Written {
  /** Revisions of the first event of the import and of the last event of all. */
  first?: number
  last: number
  isByOthers: boolean
  isUndone: boolean
}

const writtenSince = async ({ log }: ResourceServices, { type, importId, undoId, id }: Change): Promise<Written> => {
  const written: Written = { last: 0, isByOthers: false, isUndone: false }
  const stream = `${type === 'datasource' ? RECORD_STREAMS : TASK_STREAMS}${id}`
  for await (const { revision, metadata } of eventsOf(log, stream)) {
    written.last = revision
    if (metadata.actor === `import:${importId}`) written.first ??= revision
    else if (written.first !== undefined && metadata.$correlationId === undoId) written.isUndone = true
    else if (written.first !== undefined) written.isByOthers = true
  }
  return written
}

const valuesAt = async (
  { log, keyring }: ResourceServices,
  declaration: ResourceDeclaration,
  id: string,
  revision: number,
): Promise<JsonObject> => {
  const secrets = new ResourceSecrets(declaration, keyring)
  const decider = resourceDecider(declaration, (data) => secrets.opened(data))
  const found = await stateBy(log, `${declaration.noun}-${id}`, decider, (event) => event.revision === revision)
  return found?.state.values ?? {}
}

/** @throws Failure forbidden where the caller's role hides a changed field, not_found */
const recordBody = async (
  { tables }: ResourceServices,
  { organizationId, caller }: WriteOrigin,
  before: JsonObject,
  after: JsonObject,
): Promise<JsonObject> => {
  const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, after.dataTypeId as string)
  if (type === undefined) throw new Failure('not_found', { message: 'Its data type is not there any more.' })
  const keys = type.fields.map(({ _id }) => _id)
  const patch = patchBack(before.values as JsonObject, after.values as JsonObject, keys)
  const hidden = caller === undefined ? new Set<string>() : hiddenOf(caller, type)
  const named = type.fields.filter(({ _id }) => Object.hasOwn(patch, _id))
  const unseen = named.find(({ name }) => hidden.has(name))
  if (unseen !== undefined) throw new Failure('forbidden', { message: 'A field that was changed is hidden from you.' })
  return { values: Object.fromEntries(named.map(({ _id, name }) => [name, patch[_id]])) }
}

/** A merge patch that restores these members. */
const patchBack = (
  before: JsonObject,
  after: JsonObject,
  names: readonly string[] = [...new Set([...Object.keys(before), ...Object.keys(after)])],
): JsonObject => {
  const patch: JsonObject = {}
  for (const name of names) {
    const [was, is] = [memberOf(before, name), memberOf(after, name)]
    if (isDeepStrictEqual(was, is)) continue
    patch[name] = isObject(was) && isObject(is) ? patchBack(was, is) : (was ?? null)
  }
  return patch
}

const memberOf = (values: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined
