import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import { resolved, resolvedObject } from '../../../features/automations/values.ts'
import { type FlowRow, FLOWS } from '../../../features/flows/views.ts'
import type { Move } from '../../../features/tasks/moves.ts'
import { TaskWriter } from '../../../features/tasks/task-writer.ts'
import type { TaskRow } from '../../../features/tasks/views.ts'
import { assertNoFaults, invalid } from '../../../kernel/errors.ts'
import type { Json, JsonObject } from '../../../kernel/json.ts'
import { UUID } from '../../../kit/http/page-members.ts'
import { assertValid, compileCheck } from '../../../kit/http/validate.ts'
import { assertExists } from '../../../kit/resource/references.ts'
import type { Action, Work } from './action.ts'
import { dynamicFaults, namesDataSource, valuesOf } from './event-values.ts'
import { DETAILS_PATH, hasWritten, type InsideServices, membersOf, objectOf, originOf, outcomeOf } from './inside.ts'
import { assertHub, componentFaults, fieldFaults, livingUsers, lowerCase, placeFaults } from './task-content.ts'

const PATHS = {
  hubId: `${DETAILS_PATH}/hubId`,
  teamId: `${DETAILS_PATH}/teamId`,
  assigneeIds: `${DETAILS_PATH}/assigneeIds`,
}

/** Common part of the three types that change the event's task; `act` does it, once for each run. */
const taskAction = (
  services: InsideServices,
  parts: Pick<Action, 'check' | 'needs' | 'names' | 'preview'> & { act(work: Work, task: TaskRow): Promise<unknown> },
): Action => {
  const { act, ...others } = parts
  return {
    isSigned: false,
    isOutside: () => false,
    // A task is read from its own stream, and the records that it names were listed before it was written.
    readsLists: (details) => namesDataSource(details),
    ...others,
    show: (details) => details,
    attempt: (work) =>
      outcomeOf(async () => {
        const taskId = work.run.trigger.subject.id
        if (!(await hasWritten(services, `task-${taskId}`, work))) await act(work, work.data.task as TaskRow)
        return { taskId }
      }),
  }
}

export const moveTaskAction = (services: InsideServices): Action => {
  const writer = new TaskWriter(services)
  const moveOf = async (work: Work): Promise<Move & { type: 'move' }> => {
    const { hubId } = await valuesIn(services, work)
    assertValid(MOVE, { hubId })
    return { type: 'move', hubId: String(hubId).toLowerCase() }
  }
  return taskAction(services, {
    needs: ['edit/task', 'dispatch/task'],
    check: async (sent, context) => {
      const details = membersOf(sent, ['hubId'], ['hubId'])
      assertNoFaults(await dynamicFaults(context, details, DETAILS_PATH))
      assertNoFaults(fieldFaults('hubId', details.hubId, PATHS.hubId))
      assertNoFaults(await placeFaults(context, details, PATHS))
      return details
    },
    names: ({ hubId }) => ({ hubs: hubId }),
    preview: async (work) => ({
      isDone: false,
      action: 'moveTask',
      taskId: taskIdOf(work),
      move: { ...(await moveOf(work)) },
    }),
    act: async (work, { createdAt }) => {
      const move = await moveOf(work)
      await assertHub(services, work, move.hubId)
      await writer.move(originOf(services, work), taskIdOf(work), createdAt, move)
    },
  })
}

export const assignTaskAction = (services: InsideServices): Action => {
  const writer = new TaskWriter(services)
  const moveOf = async (work: Work): Promise<Move & { type: 'assign' }> => {
    const { teamId, assigneeIds } = await valuesIn(services, work)
    const people =
      assigneeIds === undefined ? undefined : await livingUsers(services, work, assigneeIds, work.details.assigneeIds)
    const body = {
      ...(teamId !== undefined && { teamId: lowerCase(teamId) }),
      ...(people !== undefined && { assigneeIds: people }),
    }
    if (Object.keys(body).length === 0) throw invalid('/assigneeIds', 'is nothing in this event')
    assertValid(ASSIGN, body)
    return { type: 'assign', ...(body as { teamId?: string; assigneeIds?: string[] }) }
  }
  return taskAction(services, {
    needs: ['edit/task', 'dispatch/task'],
    check: async (sent, context) => {
      const details = membersOf(sent, ['assigneeIds', 'teamId'], [])
      if (Object.keys(details).length === 0) throw invalid(PATHS.assigneeIds, 'is required, or teamId')
      assertNoFaults(await dynamicFaults(context, details, DETAILS_PATH))
      for (const [name, value] of Object.entries(details))
        assertNoFaults(fieldFaults(name, value, `${DETAILS_PATH}/${name}`))
      assertNoFaults(await placeFaults(context, details, PATHS))
      return details
    },
    names: ({ teamId, assigneeIds }) => ({ teams: teamId, users: assigneeIds }),
    preview: async (work) => ({
      isDone: false,
      action: 'assignTask',
      taskId: taskIdOf(work),
      move: { ...(await moveOf(work)) },
    }),
    act: async (work, { createdAt }) => {
      await writer.move(originOf(services, work), taskIdOf(work), createdAt, await moveOf(work))
    },
  })
}

/** Fills in components of the event's task, also those that are read-only for clients. */
export const updateTaskAction = (services: InsideServices): Action => {
  const writer = new TaskWriter(services)
  const componentsOf = async (work: Work): Promise<JsonObject> => {
    const valueFor = await valuesOf(services, work, work.details)
    return resolvedObject(work.details.components as JsonObject, valueFor)
  }
  return taskAction(services, {
    needs: ['edit/task'],
    check: checkUpdate,
    preview: async (work) => ({
      isDone: false,
      action: 'updateTask',
      taskId: taskIdOf(work),
      components: await componentsOf(work),
    }),
    act: async (work) => writer.fill(originOf(services, work), taskIdOf(work), await componentsOf(work)),
  })
}

const FLOW_PATH = '/rules/fields/task.flowId'

const checkUpdate = async (sent: JsonObject | undefined, context: DetailsContext): Promise<Details> => {
  const { tables, editor } = context
  const details = membersOf(sent, ['components'], ['components'])
  const path = `${DETAILS_PATH}/components`
  const components = objectOf(details.components, path)
  if (Object.keys(components).length === 0) throw invalid(path, 'must have at least one member')
  assertNoFaults(await dynamicFaults(context, components, path))
  const flowId = context.fields['task.flowId']
  const flow =
    typeof flowId === 'string'
      ? await assertExists<FlowRow>(tables, FLOWS, editor.organizationId, flowId.toLowerCase(), FLOW_PATH)
      : undefined
  assertNoFaults(await componentFaults(context, flow, components, path))
  return details
}

const MOVE = compileCheck({ type: 'object', properties: { hubId: UUID }, required: ['hubId'] })
const ASSIGN = compileCheck({
  type: 'object',
  properties: { teamId: UUID, assigneeIds: { type: 'array', items: UUID, maxItems: 50 } },
})

const taskIdOf = ({ run }: Work): string => run.trigger.subject.id

/** The members of the details, with the values of this run. */
const valuesIn = async (services: InsideServices, work: Work): Promise<{ [name: string]: Json | undefined }> => {
  const valueFor = await valuesOf(services, work, work.details)
  return Object.fromEntries(Object.entries(work.details).map(([name, value]) => [name, resolved(value, valueFor)]))
}
