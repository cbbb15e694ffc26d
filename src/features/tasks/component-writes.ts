import { assertNoFaults } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { type DataTypeRow, DATA_TYPES } from '../data/views.ts'
import { recordsAt } from './records-at.ts'
import { flowAt, type FlowContent, type FlowRow } from '../flows/views.ts'
import { fillComponents, fromRecord, missingComponents, sourceRecord } from './components.ts'
import { latestOf, withFillingTimes } from './filled-at.ts'
import type { TaskValues } from './views.ts'

export interface Sent {
  components: JsonObject
  /** Time of filling in, at the device, ms since the epoch; absent: now. */
  at?: number
}

/** Values of a task's components, according to its flow. */
export class ComponentWrites {
  private readonly services: Pick<ResourceServices, 'log' | 'tables'>

  constructor(services: Pick<ResourceServices, 'log' | 'tables'>) {
    this.services = services
  }

  /** The flow at the version of the task's creation. */
  async flowOf({ flowId, flowVersion }: TaskValues): Promise<FlowContent> {
    const flow = await flowAt(this.services.log, flowId, flowVersion)
    if (flow === undefined) throw new Error(`version ${flowVersion} of the flow ${flowId} is not in the log`)
    return flow
  }

  /** `next` with the sent components, except where others were written later. @throws Failure invalid */
  async filled(origin: WriteOrigin, next: TaskValues, { components, at }: Sent): Promise<TaskValues> {
    const { organizationId, now, caller } = origin
    const flow = await this.flowOf(next)
    const time = { now, ...(at !== undefined && { at }) }
    const sent = latestOf(next, components, time)
    const isService = caller === undefined
    const tables = at === undefined ? this.services.tables : recordsAt(this.services, at)
    const { values, faults } = await fillComponents(tables, organizationId, flow, next.components, sent, isService)
    assertNoFaults(faults)
    return withFillingTimes(next, { ...next, components: values }, time, Object.keys(sent))
  }

  /** Like `filled`, and required components must have a value. */
  async finished(origin: WriteOrigin, next: TaskValues, sent: Sent): Promise<TaskValues> {
    const done = await this.filled(origin, next, sent)
    assertNoFaults(missingComponents(await this.flowOf(next), done.components))
    return done
  }

  /** Values that a new task takes from its record. */
  async filledFrom(organizationId: string, flow: FlowRow, source: TaskValues['dataSource']): Promise<JsonObject> {
    if (source === undefined) return {}
    const { tables } = this.services
    const record = await sourceRecord(tables, organizationId, source)
    if (flow.dataSource?.dataTypeId !== record.dataTypeId) return {}
    const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, record.dataTypeId)
    return type === undefined ? {} : fromRecord(flow, type, record)
  }
}
