import type { DetailsContext } from '../../../features/automations/action-type.ts'
import { isStatic } from '../../../features/automations/values.ts'
import { RECORDS, type RecordRow } from '../../../features/data/views.ts'
import { componentsOf, type FlowContent } from '../../../features/flows/views.ts'
import { HUBS_TABLE, USERS_TABLE } from '../../../features/identity/views.ts'
import { task } from '../../../features/tasks/task.ts'
import { seesHubs } from '../../../kernel/caller.ts'
import { type FieldError, invalid } from '../../../kernel/errors.ts'
import { type Json, type JsonObject, pointerTo } from '../../../kernel/json.ts'
import { type Check, compileCheck } from '../../../kit/http/validate.ts'
import { assertExists, NAMES_NOTHING } from '../../../kit/resource/references.ts'
import { FILES, isEmpty, valueFault, type ValueRule } from '../../../kit/values/value-type.ts'
import type { Work } from './action.ts'
import { type InsideServices, NotForEditor } from './inside.ts'

/* Fields of a task in the details of an automation; the static ones are validated. */

const TEAMS = 'teams'
const COMPONENTS_MAX = 200

const checks = new Map<string, Check>()

const checkOf = (field: string): Check => {
  let check = checks.get(field)
  if (check === undefined) checks.set(field, (check = compileCheck(task.declaration.fields[field].schema)))
  return check
}

/** Faults of a static field of a task; a dynamic one is checked when the task is made. */
export const fieldFaults = (field: string, value: Json, path: string): FieldError[] =>
  isStatic(value) ? checkOf(field)(value).map((fault) => ({ ...fault, path: path + fault.path })) : []

/** Faults of components: with a flow each must be one of its own, and a static value must fit it. */
export const componentFaults = async (
  context: DetailsContext,
  flow: FlowContent | undefined,
  components: JsonObject,
  path: string,
): Promise<FieldError[]> => {
  if (Object.keys(components).length > COMPONENTS_MAX)
    return [{ path, message: `must have at most ${COMPONENTS_MAX} members` }]
  const known = flow && new Map(componentsOf(flow).map((one) => [one.id, one]))
  const faults: FieldError[] = []
  for (const [id, value] of Object.entries(components)) {
    const at = path + pointerTo(id)
    const component = known?.get(id)
    if (known === undefined && !COMPONENT_ID.test(id)) faults.push({ path: at, message: 'is no id of a component' })
    else if (known !== undefined && component === undefined)
      faults.push({ path: at, message: 'is not a component of the flow' })
    else if (component !== undefined) faults.push(...(await staticFaults(context, component, value, at)))
  }
  return faults
}

const COMPONENT_ID = /^[a-zA-Z][a-zA-Z0-9_]{0,49}$/

/** Faults of the static value of a component, or of a field of a record. */
export const staticFaults = async (
  { tables, editor }: DetailsContext,
  rule: ValueRule,
  value: Json,
  path: string,
): Promise<FieldError[]> => {
  if (!isStatic(value) || isEmpty(value)) return []
  const fault = FILES.includes(rule.type) ? 'is filled by uploading files' : valueFault(rule, value)
  if (fault !== undefined) return [{ path, message: fault }]
  if (rule.type !== 'reference') return []
  const record = await tables.get<RecordRow>(RECORDS, editor.organizationId, (value as string).toLowerCase())
  const isThere = record !== undefined && record.dataTypeId === rule.dataTypeId?.toLowerCase()
  return isThere ? [] : [{ path, message: NAMES_NOTHING }]
}

/** Faults of the hub, team and people in details; those unseen by the editor do not exist for the automation. */
export const placeFaults = async (
  { tables, editor }: DetailsContext,
  { hubId, teamId, assigneeIds }: { hubId?: Json; teamId?: Json; assigneeIds?: Json },
  paths: { hubId: string; teamId: string; assigneeIds: string },
): Promise<FieldError[]> => {
  const faults: FieldError[] = []
  const { organizationId } = editor
  const hub = typeof hubId === 'string' ? hubId.toLowerCase() : undefined
  if (
    hub !== undefined &&
    !((await tables.get(HUBS_TABLE, organizationId, hub)) !== undefined && seesHubs(editor, [hub]))
  )
    faults.push({ path: paths.hubId, message: NAMES_NOTHING })
  const team = typeof teamId === 'string' ? await tables.get(TEAMS, organizationId, teamId.toLowerCase()) : undefined
  if (typeof teamId === 'string') {
    if (team === undefined || !seesHubs(editor, [team.hubId as string]))
      faults.push({ path: paths.teamId, message: NAMES_NOTHING })
    else if (hub !== undefined && team.hubId !== hub)
      faults.push({ path: paths.teamId, message: 'is a team of another hub' })
  }
  for (const [i, id] of (Array.isArray(assigneeIds) ? assigneeIds : []).entries())
    if (typeof id === 'string' && (await tables.get(USERS_TABLE, organizationId, id.toLowerCase())) === undefined)
      faults.push({ path: `${paths.assigneeIds}/${i}`, message: NAMES_NOTHING })
  return faults
}

/**
 * People of a run, by id; those named by the automation itself and deleted since are left out.
 * @param said value in the details
 * @throws Failure invalid when nobody is left
 */
export const livingUsers = async (
  { tables }: InsideServices,
  { automation }: Work,
  people: Json,
  said: Json | undefined,
): Promise<Json> => {
  if (!Array.isArray(people)) return people
  const ids = [...new Set(people.map(lowerCase))]
  if (said === undefined || !isStatic(said)) return ids
  const users = await tables.getMany(USERS_TABLE, automation.organizationId, ids as string[])
  const left = ids.filter((_, i) => users[i] !== undefined)
  if (left.length === 0 && ids.length > 0) throw invalid('/assigneeIds', 'names nobody who is still there')
  return left
}

/** @throws Failure invalid for a missing hub, NotForEditor for one that the editor does not have */
export const assertHub = async (
  { tables }: InsideServices,
  { automation, editor }: Work,
  hubId: string,
): Promise<void> => {
  await assertExists(tables, HUBS_TABLE, automation.organizationId, hubId, '/hubId')
  if (!seesHubs(editor, [hubId])) throw new NotForEditor()
}

export const lowerCase = (id: Json): Json => (typeof id === 'string' ? id.toLowerCase() : id)
