import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { PlacedRow } from '../../kit/formats/feature-writers.ts'
import { cellOf, type WrittenCell } from '../../kit/formats/table-writer.ts'
import { parseTime } from '../../kit/http/parse-time.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { bareName, DATA_TYPES, type DataTypeRow, hiddenOf } from '../data/views.ts'
import { componentsOf, type FlowRow, FLOWS } from '../flows/views.ts'
import type { ExportQuestion } from './events.ts'

export interface ExportColumn {
  title: string
  cell(row: Row): WrittenCell
}

export interface ExportShape {
  columns: ExportColumn[]
  /** `fields` of the list's query; undefined for all members. */
  fields?: string
  /** The row with its place; undefined if it has none. */
  placed(row: Row): PlacedRow | undefined
  /** Name of the sheet. */
  name: string
}

const TASK_FIELDS = [
  '_id',
  'externalId',
  'title',
  'description',
  'state',
  'flowId',
  'hubId',
  'teamId',
  'assigneeIds',
  'address',
  'lat',
  'lng',
  'window.from',
  'window.to',
  'dueAt',
  'priority',
  'durationMinutes',
  'load',
  'tags',
  'createdAt',
  'assignedAt',
  'startedAt',
  'finishedAt',
  'cancelledAt',
]
const TIMES = new Set(TASK_FIELDS.filter((name) => /At$|^window\./.test(name)).concat('updatedAt'))
export const RECORD_MEMBERS: readonly string[] = [
  '_id',
  'dataTypeId',
  'createdAt',
  'updatedAt',
  'version',
  'organizationId',
]

/** What a name of a record's column says. */
const recordField = (said: string): { said: string; name: string; isMember: boolean } => {
  const isMember = RECORD_MEMBERS.includes(said)
  return { said, name: isMember ? said : bareName(said), isMember }
}

/** @throws Failure invalid for an unknown type, or one without places if the format needs them */
export const exportShape = (tables: TableStore, caller: UserCaller, question: ExportQuestion): Promise<ExportShape> =>
  question.kind === 'data' ? recordShape(tables, caller, question) : taskShape(tables, caller, question)

const recordShape = async (tables: TableStore, caller: UserCaller, question: ExportQuestion): Promise<ExportShape> => {
  const { organizationId } = caller
  const type = await assertExists<DataTypeRow>(
    tables,
    DATA_TYPES,
    organizationId,
    question.dataTypeId as string,
    '/dataTypeId',
  )
  const hidden = hiddenOf(caller, type)
  const shown = type.fields.filter(({ name }) => !hidden.has(name))
  const places = shown.filter(({ type: one }) => one === 'coordinate').map(({ name }) => name)
  const asked = question.fields?.map(recordField)
  const place = places.find((one) => asked?.some(({ name }) => name === one)) ?? places[0]
  assertPlaces(question, place !== undefined)
  const times = new Set(shown.filter(({ type: one }) => one === 'datetime').map(({ name }) => name))
  // A type may have fields that are named like members of its records.
  const own = shown.map(({ name }) => ({ said: name, name, isMember: false }))
  const columns = (asked ?? [recordField('_id'), ...own]).map(({ said, name, isMember }): ExportColumn => {
    const readValue = (row: Row): Json | undefined =>
      isMember ? (row[name] as Json) : (row.values as JsonObject | undefined)?.[name]
    const isTime = isMember ? TIMES.has(name) : times.has(name)
    return {
      title: titleOf(question, said),
      cell: (row) => (isTime ? timeCell(readValue(row)) : cellOf(readValue(row))),
    }
  })
  const isAsked = asked === undefined || asked.some(({ name, isMember }) => name === place && !isMember)
  const further = isPlaced(question.format) && !isAsked ? [`values.${place}`] : []
  return {
    name: type.name,
    columns,
    ...(question.fields !== undefined && { fields: [...question.fields, ...further].join() }),
    placed: (row) => {
      const values = (row.values ?? {}) as JsonObject
      const at = place === undefined ? undefined : placeIn(values[place])
      const key = values[type.primaryKey]
      const { [place as string]: _place, ...others } = values
      const properties = isAsked ? values : others
      return at && { id: row._id as string, ...at, properties, ...(key !== undefined && { name: String(key) }) }
    },
  }
}

const taskShape = async (tables: TableStore, caller: UserCaller, question: ExportQuestion): Promise<ExportShape> => {
  const asked = [question.filter.flowId ?? []].flat().flatMap((one) => String(one).toLowerCase().split(','))
  const [flowId, ...others] = new Set(asked)
  const flow =
    flowId === undefined || others.length > 0
      ? undefined
      : await tables.get<FlowRow>(FLOWS, caller.organizationId, flowId)
  const components = flow === undefined ? [] : componentsOf(flow)
  const own = flow === undefined ? ['components'] : components.map(({ id }) => `components.${id}`)
  const moments = components.filter(({ type }) => type === 'datetime').map(({ id }) => `components.${id}`)
  const names = question.fields ?? [...TASK_FIELDS, ...own]
  const columns = names.map((name): ExportColumn => {
    const path = name.split('.')
    const readValue = (row: Row): Json | undefined => valueIn(row as JsonObject, path)
    const isTime = TIMES.has(name) || moments.includes(name)
    return {
      title: titleOf(question, name),
      cell: (row) => (isTime ? timeCell(readValue(row)) : cellOf(readValue(row))),
    }
  })
  const members = [...new Set([...names.map((name) => name.split('.')[0]), ...placeMembers(question)])]
  return {
    name: 'Tasks',
    columns,
    ...(question.fields !== undefined && { fields: members.join() }),
    placed: (row) => {
      const { _id: id, lat: _lat, lng: _lng, ...properties } = row as JsonObject & { _id: string }
      const at = placeIn(row as JsonObject)
      if (at === undefined) return undefined
      const { title, window } = properties as { title?: string; window?: { from: string } }
      return {
        id,
        ...at,
        properties,
        ...(title !== undefined && { name: title }),
        ...(window && { time: window.from }),
      }
    },
  }
}

const placeMembers = ({ format }: ExportQuestion): string[] => (isPlaced(format) ? ['lat', 'lng'] : [])

export const isPlaced = (format: ExportQuestion['format']): boolean => format === 'geojson' || format === 'gpx'

const assertPlaces = ({ format }: ExportQuestion, hasPlaces: boolean): void => {
  if (isPlaced(format) && !hasPlaces)
    throw invalid('/format', `is for rows with places: no field that you see is a coordinate`)
}

const titleOf = ({ mapping }: ExportQuestion, name: string): string =>
  Object.hasOwn(mapping, name) ? mapping[name] : name

const valueIn = (row: JsonObject, path: readonly string[]): Json | undefined => {
  let value: Json | undefined = row
  for (const step of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step))
      return undefined
    value = value[step]
  }
  return value
}

/** A value that was stored before its field became one of times stays as it is. */
const timeCell = (value: Json | undefined): WrittenCell => {
  const at = typeof value === 'string' ? parseTime(value) : Number.NaN
  return Number.isNaN(at) ? cellOf(value) : new Date(at)
}

const placeIn = (value: Json | undefined): { lat: number; lng: number } | undefined => {
  const { lat, lng } = (value ?? {}) as JsonObject
  return typeof lat === 'number' && typeof lng === 'number' ? { lat, lng } : undefined
}
