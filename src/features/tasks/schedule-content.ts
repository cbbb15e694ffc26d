import { isDeepStrictEqual } from 'node:util'
import { assertNoFaults, Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { type FlowRow, FLOWS } from '../flows/views.ts'
import { assertAssignees } from './assignees.ts'
import { fillComponents, sourceOf, sourceRecord } from './components.ts'
import { assertPlace } from './place.ts'

/**
 * Checks that a schedule's tasks can be created now: changed content is validated like a task's own body.
 * @throws Failure invalid with the path below `/task`
 */
export const assertContent = async ({ services, caller, ...write }: WriteContext): Promise<void> => {
  const { organizationId, values, before } = write
  if (caller === undefined || (before !== undefined && isDeepStrictEqual(contentOf(values), contentOf(before)))) return
  await below('/task', async () => {
    const { hubId, teamId, assigneeIds } = values as { hubId: string; teamId?: string; assigneeIds: string[] }
    const { components, dataSource, ...body } = values.task as JsonObject
    assertPlace(body)
    await assertAssignees(services, organizationId, { hubId, teamId, assigneeIds })
    const flow = await services.tables.get<FlowRow>(FLOWS, organizationId, String(values.flowId).toLowerCase())
    const sent = (components ?? {}) as JsonObject
    if (flow !== undefined)
      assertNoFaults((await fillComponents(services.tables, organizationId, flow, {}, sent, true)).faults)
    const source = sourceOf(dataSource)
    if (source !== undefined) await sourceRecord(services.tables, organizationId, source)
  })
}

const contentOf = ({ flowId, hubId, teamId, assigneeIds, task }: JsonObject): JsonObject => {
  const { window: _window, leadMinutes: _lead, ...content } = task as JsonObject
  return { flowId, hubId, teamId: teamId ?? null, assigneeIds, content }
}

/** Moves the paths of faults below another one. */
const below = async (root: string, check: () => Promise<void>): Promise<void> => {
  try {
    await check()
  } catch (error) {
    if (!(error instanceof Failure) || error.details.errors === undefined) throw error
    const errors = error.details.errors.map(({ path, message }) => ({ path: root + path, message }))
    throw new Failure(error.code, { message: `${errors[0].path} ${errors[0].message}`, errors })
  }
}
