import { dataType } from '../../features/data/data-type.ts'
import { RecordWriter } from '../../features/data/record-writer.ts'
import { record } from '../../features/data/record.ts'
import { DATA_TYPES, RECORDS } from '../../features/data/views.ts'
import { FLOWS } from '../../features/flows/views.ts'
import { HUBS_TABLE, USERS_TABLE } from '../../features/identity/views.ts'
import { task } from '../../features/tasks/task.ts'
import { TaskWriter } from '../../features/tasks/task-writer.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { WriteOrigin, Written } from '../../kit/resource/writes.ts'
import type { SampleMaker } from './make-samples.ts'

type WorkServices = ResourceServices & {
  /** Waits for the tables: the next records name those made before. */
  settle: Settle
}

const SETTLE_MS = 5_000
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const TYPE: JsonObject = {
  name: 'Sample customers',
  type: 'customer',
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text', label: 'Number' },
    { name: 'name', type: 'text', label: 'Name', required: true },
    { name: 'phone', type: 'text', label: 'Phone', max: 30 },
    { name: 'kind', type: 'option', label: 'Kind', options: ['shop', 'restaurant', 'private'] },
    { name: 'place', type: 'coordinate', label: 'Place' },
  ],
}

interface Sample {
  customer: { number: string; name: string; phone: string; kind: string }
  /** From the hub, in degrees. */
  north: number
  east: number
  /** The key of a default flow, and the title of its task. */
  flow: string
  title: string
}

const SAMPLES: readonly Sample[] = [
  {
    customer: { number: 'S-1', name: 'Sample corner shop', phone: '555-0101', kind: 'shop' },
    ...{ north: 0.012, east: 0.008, flow: 'delivery', title: 'Sample delivery to the corner shop' },
  },
  {
    customer: { number: 'S-2', name: 'Sample restaurant', phone: '555-0102', kind: 'restaurant' },
    ...{ north: -0.009, east: 0.015, flow: 'pickup', title: 'Sample pickup at the restaurant' },
  },
  {
    customer: { number: 'S-3', name: 'Sample household', phone: '555-0103', kind: 'private' },
    ...{ north: 0.005, east: -0.014, flow: 'visit', title: 'Sample visit to the household' },
  },
]

/**
 * A data type with three customers around the hub, and a task at each, the first one assigned to the founder of the
 * organization. Existing records, by their id, are not made again, and deleted ones stay deleted.
 */
export const sampleWork =
  (services: WorkServices): SampleMaker =>
  async (origin, hubId) => {
    const { tables } = services
    const { organizationId } = origin
    const idOf = (kind: string, i = 0): string => idFrom(`sample-${kind}`, organizationId, i)
    const dataTypeId = idOf('data-type')
    const types = dataType.writer(services)
    const hasType = await made(services, types, dataTypeId, () => types.create(origin, { ...TYPE, _id: dataTypeId }))
    const hub = await tables.get<{ lat: number; lng: number }>(HUBS_TABLE, organizationId, hubId)
    if (!hasType || hub === undefined) return
    for (const [i, sample] of SAMPLES.entries()) {
      const place = { lat: within(hub.lat + sample.north, 90), lng: within(hub.lng + sample.east, 180) }
      const body = { _id: idOf('data', i), dataTypeId, values: { ...sample.customer, place } }
      const makeRecord = () => new RecordWriter(services).create(origin, body)
      const hasRecord = await made(services, record.writer(services), body._id, makeRecord)
      const dataSource = hasRecord ? { dataTypeId, dataId: body._id } : undefined
      const makeTask = () => createTask(services, origin, i, { _id: idOf('task', i), hubId, ...place }, dataSource)
      await made(services, task.writer(services), idOf('task', i), makeTask)
    }
  }

/** Whether it exists: made now, or before. @throws Error when the tables do not have it yet */
const made = async (
  { tables, settle }: WorkServices,
  writer: ResourceWriter,
  id: string,
  make: () => Promise<Written | undefined>,
): Promise<boolean> => {
  const { state } = await writer.load(id)
  if (state.status === 'deleted') return false
  if (state.status === 'absent') {
    const written = await make()
    if (written?.wrote !== undefined) await settle(written.wrote, SETTLE_MS)
    return written !== undefined
  }
  const { plural } = writer.declaration
  if (plural !== RECORDS && plural !== DATA_TYPES) return true
  if ((await tables.get(plural, state.organizationId, id)) === undefined)
    throw new Error(`the tables do not have the sample ${id} yet`)
  return true
}

/** Undefined where the flow was deleted. */
const createTask = async (
  services: WorkServices,
  origin: WriteOrigin,
  i: number,
  body: JsonObject,
  dataSource: JsonObject | undefined,
): Promise<Written | undefined> => {
  const { tables } = services
  const { organizationId, now } = origin
  const { flow, title, customer } = SAMPLES[i]
  const [found] = (await tables.find(FLOWS, organizationId, { where: { key: flow }, limit: 1 })).rows
  if (found === undefined) return undefined
  const oldest = { sort: { field: 'createdAt', order: 'asc' }, limit: 1 } as const
  const [founder] = i === 0 ? (await tables.find(USERS_TABLE, organizationId, oldest)).rows : []
  const from = (Math.floor(now / DAY_MS) + 1) * DAY_MS + (8 + 2 * i) * HOUR_MS
  return new TaskWriter(services).create(origin, {
    ...body,
    flowId: found.id,
    title,
    address: customer.name,
    window: { from: new Date(from).toISOString(), to: new Date(from + 2 * HOUR_MS).toISOString() },
    durationMinutes: 15,
    tags: ['sample'],
    assigneeIds: founder === undefined ? [] : [founder.id],
    ...(dataSource !== undefined && { dataSource }),
  })
}

const within = (degrees: number, bound: number): number =>
  Math.round(Math.max(-bound, Math.min(bound, degrees)) * 1e6) / 1e6
