import { type ExternalIdServices, taskByExternalId } from '../../features/tasks/external-ids.ts'
import { task } from '../../features/tasks/task.ts'
import { seesTask, TASKS, type TaskRow } from '../../features/tasks/views.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import { seesRow } from '../../kit/http/list-query.ts'
import type { PlacedTask } from './route-places.ts'

/** Tasks that rows name. */
export class TaskFinder {
  private readonly services: ExternalIdServices
  private readonly caller: UserCaller
  /** Tasks made by earlier rows: the tables may not have them yet. */
  private readonly makes = new Map<string, PlacedTask>()

  constructor(services: ExternalIdServices, caller: UserCaller) {
    this.services = services
    this.caller = caller
  }

  made(externalId: string, task: PlacedTask): void {
    this.makes.set(normalizeKey(externalId), task)
  }

  /** @throws Failure key_in_use for a task that the caller does not see */
  async byExternalId(externalId: string): Promise<PlacedTask | undefined> {
    const known = this.makes.get(normalizeKey(externalId))
    if (known !== undefined) return known
    const row = await taskByExternalId(this.services, this.caller.organizationId, externalId)
    if (row === undefined) return undefined
    if (!seesRow(this.caller, row, task.declaration))
      throw new Failure('key_in_use', { message: 'externalId is taken by a task that you do not see.' })
    return { id: row._id, hubId: row.hubId, isNew: false }
  }

  /** An existing task that the caller sees, by id or by externalId. */
  async seen(by: { taskId: string } | { externalId: string }): Promise<TaskRow | undefined> {
    const { organizationId } = this.caller
    const row =
      'taskId' in by
        ? await this.services.tables.get<TaskRow>(TASKS, organizationId, by.taskId.trim().toLowerCase())
        : await taskByExternalId(this.services, organizationId, by.externalId)
    return row !== undefined && seesHubs(this.caller, [row.hubId]) && seesTask(this.caller, row) ? row : undefined
  }
}
