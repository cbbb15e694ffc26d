import type { Details, DetailsContext } from '../../../features/automations/action-type.ts'
import { EVENT_DATA_TYPES } from '../../../features/automations/events.ts'
import { resolved, resolvedObject } from '../../../features/automations/values.ts'
import { type FlowRow, FLOWS } from '../../../features/flows/views.ts'
import { task as taskResource } from '../../../features/tasks/task.ts'
import { TaskWriter } from '../../../features/tasks/task-writer.ts'
import { assertNoFaults, type FieldError, invalid } from '../../../kernel/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import { idFrom } from '../../../kit/commands/ids.ts'
import { assertValid, compileCheck } from '../../../kit/http/validate.ts'
import { createSchema } from '../../../kit/resource/schemas.ts'
import { heldSchema } from '../../../kit/resource/new-names.ts'
import { assertExists } from '../../../kit/resource/references.ts'
import type { Action, Work } from './action.ts'
import { dynamicFaults, namesDataSource, valuesOf } from './event-values.ts'
import {
  DETAILS_PATH,
  hasWritten,
  idOf,
  type InsideServices,
  membersOf,
  objectOf,
  originOf,
  outcomeOf,
} from './inside.ts'
import { assertHub, componentFaults, fieldFaults, livingUsers, lowerCase, placeFaults } from './task-content.ts'

const TASK_PATH = `${DETAILS_PATH}/task`
const { flowId: _flowId, ...CONTENT } = taskResource.declaration.fields
const PEOPLE = ['teamId', 'assigneeIds']

const checkBody = compileCheck(heldSchema(createSchema(taskResource.declaration)))

/** Makes a task, whose id is derived from the run. `isAssigned`: it names the assignees. */
export const createTaskAction = (services: InsideServices, isAssigned: boolean): Action => {
  const writer = new TaskWriter(services)
  return {
    isSigned: false,
    isOutside: () => false,
    readsLists: (details, { subject }) =>
      subject.type === 'record' ||
      namesDataSource(details) ||
      (details.task as JsonObject | undefined)?.dataSource !== undefined,
    needs: ['edit/task', 'dispatch/task'],
    check: (details, context) => check(details, context, isAssigned),
    show: (details) => details,
    names: ({ flowId, hubId, teamId, assigneeIds, task }) => ({
      flows: flowId,
      hubs: hubId ?? (task as JsonObject).hubId,
      teams: teamId,
      users: assigneeIds,
    }),
    preview: async (work) => {
      const body = await bodyOf(services, work)
      return { isDone: false, action: isAssigned ? 'createAndAssignTask' : 'createTask', task: body }
    },
    attempt: (work) =>
      outcomeOf(async () => {
        const taskId = idFrom('automation-task', work.run.runId)
        if (await hasWritten(services, `task-${taskId}`, work)) return { taskId }
        const body = await bodyOf(services, work)
        assertValid(checkBody, body)
        await assertHub(services, work, body.hubId as string)
        await writer.create(originOf(services, work), { ...body, _id: taskId })
        return { taskId }
      }),
  }
}

const check = async (sent: JsonObject | undefined, context: DetailsContext, isAssigned: boolean): Promise<Details> => {
  const known = ['flowId', 'hubId', 'task', ...(isAssigned ? PEOPLE : [])]
  const { flowId: sentFlow, hubId: sentHub, task: sentTask, ...people } = membersOf(sent, known, ['flowId', 'task'])
  const { tables, editor, event } = context
  const content = objectOf(sentTask, TASK_PATH)
  const faults: FieldError[] = await dynamicFaults(context, { ...sent } as JsonObject, DETAILS_PATH)
  assertNoFaults(faults)
  const flowId = idOf(sentFlow, `${DETAILS_PATH}/flowId`)
  const flow = await assertExists<FlowRow>(tables, FLOWS, editor.organizationId, flowId, `${DETAILS_PATH}/flowId`)
  for (const [name, value] of Object.entries(content)) {
    const path = `${TASK_PATH}/${name}`
    if (!Object.hasOwn(CONTENT, name)) faults.push({ path, message: 'is not a known field' })
    else if (PEOPLE.includes(name))
      faults.push({ path, message: isAssigned ? 'stands beside task' : 'is for createAndAssignTask' })
    else faults.push(...fieldFaults(name, value, path))
  }
  if (content.title === undefined) faults.push({ path: `${TASK_PATH}/title`, message: 'is required' })
  for (const [name, value] of Object.entries(people))
    faults.push(...fieldFaults(name, value, `${DETAILS_PATH}/${name}`))
  if (isAssigned && !PEOPLE.some((name) => isSomebody(people[name])))
    faults.push({ path: `${DETAILS_PATH}/assigneeIds`, message: 'is required, or teamId' })
  faults.push(...hubFaults(sentHub, content.hubId, event))
  assertNoFaults(faults)
  const { components } = content
  if (components !== undefined && isObject(components))
    faults.push(...(await componentFaults(context, flow, components, `${TASK_PATH}/components`)))
  const hubPath = sentHub === undefined ? `${TASK_PATH}/hubId` : `${DETAILS_PATH}/hubId`
  const place = { hubId: sentHub ?? content.hubId, ...people }
  const paths = { hubId: hubPath, teamId: `${DETAILS_PATH}/teamId`, assigneeIds: `${DETAILS_PATH}/assigneeIds` }
  faults.push(...(await placeFaults(context, place, paths)))
  assertNoFaults(faults)
  return { ...(sent as JsonObject), flowId }
}

const isSomebody = (value: Json | undefined): boolean =>
  value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)

/** Where the details name no hub, the event's is used. */
const hubFaults = (
  beside: Json | undefined,
  within: Json | undefined,
  event: DetailsContext['event'],
): FieldError[] => {
  const path = `${DETAILS_PATH}/hubId`
  if (beside !== undefined && within !== undefined) return [{ path, message: 'stands in task too; leave one out' }]
  if (beside !== undefined) return fieldFaults('hubId', beside, path)
  const needsHub = within === undefined && EVENT_DATA_TYPES[event] === 'data'
  return needsHub ? [{ path, message: `is required: an event ${event} has no hub` }] : []
}

/** The body of the new task, before the checks of every task. */
const bodyOf = async (services: InsideServices, work: Work): Promise<JsonObject> => {
  const { flowId, hubId, task, teamId, assigneeIds } = work.details
  const valueFor = await valuesOf(services, work, work.details)
  const content = resolvedObject(task as JsonObject, valueFor)
  const found = (value: Json | undefined): Json | undefined => (value === undefined ? value : resolved(value, valueFor))
  const hub = found(hubId) ?? content.hubId ?? hubOfEvent(work)
  if (hub === undefined) throw invalid('/hubId', 'is required: what the event is about has no hub')
  const [team, people] = [found(teamId), found(assigneeIds)]
  return {
    ...content,
    flowId,
    hubId: lowerCase(hub),
    ...(team !== undefined && { teamId: lowerCase(team) }),
    ...(people !== undefined && { assigneeIds: await livingUsers(services, work, people, assigneeIds) }),
  }
}

const hubOfEvent = ({ data }: Work): Json | undefined => {
  for (const name of ['task', 'routingResult', 'tracker']) {
    const subject = data[name] as { hubId?: Json } | undefined
    if (subject?.hubId !== undefined) return subject.hubId
  }
  return undefined
}
