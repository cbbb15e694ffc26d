import type { TableStore } from '../../engines/table-store.ts'
import { task } from '../../features/tasks/task.ts'
import { seesTask, TASKS, type TaskRow } from '../../features/tasks/views.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { seesRow } from '../../kit/http/list-query.ts'
import type { PlacedTask } from './route-places.ts'

/** Tasks that rows name. */
export class TaskFinder {
  private readonly tables: TableStore
  private readonly caller: UserCaller
  /** Tasks made by earlier rows: the tables may not have them yet. */
  private readonly makes = new Map<string, PlacedTask>()

  constructor(tables: TableStore, caller: UserCaller) {
    this.tables = tables
    this.caller = caller
  }

  made(externalId: string, task: PlacedTask): void {
    this.makes.set(externalId, task)
  }

  /** @throws Failure key_in_use for a task that the caller does not see */
  async byExternalId(externalId: string): Promise<PlacedTask | undefined> {
    const known = this.makes.get(externalId)
    if (known !== undefined) return known
    const { organizationId } = this.caller
    const { rows } = await this.tables.find<TaskRow>(TASKS, organizationId, { where: { externalId }, limit: 1 })
    const found = rows.at(0)
    if (found === undefined) return undefined
    if (!seesRow(this.caller, found.row, task.declaration))
      throw new Failure('key_in_use', { message: 'externalId is taken by a task that you do not see.' })
    return { id: found.id, hubId: found.row.hubId, isNew: false }
  }

  /** An existing task that the caller sees, by id or by externalId. */
  async seen(by: { taskId: string } | { externalId: string }): Promise<TaskRow | undefined> {
    const { organizationId } = this.caller
    const row =
      'taskId' in by
        ? await this.tables.get<TaskRow>(TASKS, organizationId, by.taskId.trim().toLowerCase())
        : (await this.tables.find<TaskRow>(TASKS, organizationId, { where: { ...by }, limit: 1 })).rows.at(0)?.row
    return row !== undefined && seesHubs(this.caller, [row.hubId]) && seesTask(this.caller, row) ? row : undefined
  }
}
