import { uniqueKey } from '../../features/data/record-index.ts'
import { DATA_TYPES, type DataTypeRow } from '../../features/data/views.ts'
import { upsertRecord } from '../../features/data/upsert-record.ts'
import type { IndexedKeys } from '../../features/data/record-keys.ts'
import { RecordWriter } from '../../features/data/record-writer.ts'
import type { ImportRequested } from '../../features/imports/events.ts'
import { task } from '../../features/tasks/task.ts'
import { TaskWriter } from '../../features/tasks/task-writer.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { listed } from '../../kit/formats/cell-values.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { createSchema } from '../../kit/resource/schemas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { assertExists } from '../../kit/resource/references.ts'
import type { KnownNames } from './known-names.ts'
import { type RoutePlaces, saidPlace } from './route-places.ts'
import { placed, routeRows } from './route-rows.ts'
import type { RowWriter } from './row-written.ts'
import { TaskFinder } from './task-finder.ts'

export const rowWriterOf = async (
  services: ResourceServices,
  caller: UserCaller,
  asked: ImportRequested,
  names: KnownNames,
  places: RoutePlaces,
): Promise<RowWriter> => {
  if (asked.type === 'datasource') return recordRows(services, asked)
  const finder = new TaskFinder(services, caller)
  return asked.type === 'route' ? routeRows(finder, places) : taskRows(services, finder, asked, names, places)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const recordRows = async (services: ResourceServices, asked: ImportRequested): Promise<RowWriter> => {
  const { organizationId, mode } = asked
  const dataTypeId = asked.dataTypeId as string
  const writer = new RecordWriter(services)
  const typeNow = (): Promise<DataTypeRow> =>
    assertExists<DataTypeRow>(services.tables, DATA_TYPES, organizationId, dataTypeId, '/dataTypeId')
  const type = await typeNow()
  let indexed: IndexedKeys = new Map()
  return {
    keysOf: (values) => [values[type.primaryKey]],
    targetAt: (path) =>
      path
        .replace(/^\/values\//, '')
        .replaceAll('~1', '/')
        .replaceAll('~0', '~'),
    lookUp: async (rows) => {
      const keys = rows.flatMap((values) => values[type.primaryKey] ?? [])
      indexed = await writer.keys.indexed(organizationId, type, keys)
    },
    write: async (origin, _row, id, said) => {
      const values = await withReferences(services, writer, type, said)
      if (mode === 'upsert') return upsertRecord(services, writer, type, origin, { values }, id, indexed)
      const key = uniqueKey(values[type.primaryKey] ?? '')
      const asked = indexed.has(key) && indexed.get(key) === undefined ? type.primaryKey : undefined
      return { ...(await writer.create(origin, { _id: id, dataTypeId, values }, asked)), isNew: true }
    },
  }
}

/** Records are named by id or by primary key. */
const withReferences = async (
  { tables }: ResourceServices,
  writer: RecordWriter,
  { organizationId, fields }: DataTypeRow,
  values: JsonObject,
): Promise<JsonObject> => {
  const whole = { ...values }
  for (const field of fields) {
    const said = Object.hasOwn(values, field.name) ? values[field.name] : undefined
    if (field.type !== 'reference' || typeof said !== 'string' || UUID.test(said)) continue
    const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, field.dataTypeId as string)
    const isNumber = type?.fields.find(({ name }) => name === type.primaryKey)?.type === 'number'
    const key: Json = isNumber ? Number(said) : said
    const id = type === undefined ? undefined : await writer.keys.idOf(organizationId, type, key)
    if (id === undefined) throw invalid(`/values/${field.name}`, `names no record of ${type?.name ?? 'its type'}`)
    whole[field.name] = id
  }
  return whole
}

const checkTask = compileCheck(createSchema(task.declaration))

const taskRows = (
  services: ResourceServices,
  finder: TaskFinder,
  asked: ImportRequested,
  names: KnownNames,
  places: RoutePlaces,
): RowWriter => {
  const writer = new TaskWriter(services)
  const isUpsert = asked.mode === 'upsert'
  return {
    keysOf: ({ externalId }) => [externalId],
    targetAt: targetOfTask,
    write: async (origin, row, id, values) => {
      const said = saidPlace(values)
      const body = await taskBody(names, asked, values)
      const { externalId } = body
      if (isUpsert && typeof externalId !== 'string') throw invalid('/externalId', 'is required: tasks are found by it')
      const before = isUpsert ? await finder.byExternalId(externalId as string) : undefined
      if (before !== undefined && before.id !== id) {
        const { flowId: _flow, ...changes } = body
        const hubId = String(changes.hubId ?? before.hubId)
        return placed(places, said && { row, said, task: { id: before.id, hubId, isNew: before.isNew } }, async () => ({
          ...(await writer.change(origin, { id: before.id, kind: 'amend', body: changes })),
          isNew: false,
        }))
      }
      const whole = { hubId: asked.hubId ?? null, ...body }
      if (whole.hubId === null) throw invalid('/hubId', 'is required')
      assertValid(checkTask, whole)
      const hubId = String(whole.hubId).toLowerCase()
      const made = await placed(places, said && { row, said, task: { id, hubId, isNew: true } }, async () => ({
        ...(await writer.create(origin, { ...whole, _id: id })),
        isNew: true,
      }))
      if (typeof externalId === 'string') finder.made(externalId, { id, hubId, isNew: true })
      return made
    },
  }
}

const FIELD_OF: { [field: string]: string } = { hubId: 'hub', teamId: 'team', assigneeIds: 'assignee' }

const targetOfTask = (path: string): string => {
  const [first = '', second] = path.slice(1).split('/')
  if (['components', 'window', 'load'].includes(first) && second !== undefined) return `${first}.${second}`
  return FIELD_OF[first] ?? first
}

const taskBody = async (
  names: KnownNames,
  asked: ImportRequested,
  { route: _route, vehicle: _vehicle, sequence: _sequence, ...values }: JsonObject,
): Promise<JsonObject> => {
  const body: JsonObject = { flowId: asked.flowId as string }
  for (const [name, value] of Object.entries(values)) {
    const [outer, inner] = name.split(/\.(.*)/s)
    if (name === 'hub') body.hubId = await found(names.hub(String(value)), '/hubId', 'hub', value)
    else if (name === 'team') body.teamId = await found(names.team(String(value)), '/teamId', 'team', value)
    else if (name === 'assignee') body.assigneeIds = await usersOf(names, String(value))
    else if (name === 'tags') body.tags = [...new Set(listed(String(value)))]
    else if (inner === undefined) body[name] = value
    else body[outer] = { ...((body[outer] as JsonObject | undefined) ?? {}), [inner]: value }
  }
  return body
}

const usersOf = async (names: KnownNames, text: string): Promise<string[]> => {
  const ids = new Set<string>()
  for (const said of listed(text)) ids.add(await found(names.user(said), '/assigneeIds', 'user', said))
  return [...ids]
}

const found = async (finding: Promise<string | undefined>, path: string, noun: string, said: Json): Promise<string> => {
  const id = await finding
  if (id === undefined) throw invalid(path, `names no ${noun} that you see: ${JSON.stringify(said)}`)
  return id
}
