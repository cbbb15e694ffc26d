import { pagesOf } from '../../engines/table-store.ts'
import { type Assigned, keptAssignees } from '../../features/tasks/assignees.ts'
import { makeAtOf, nextDue, schedule } from '../../features/tasks/schedule.ts'
import { DUE_SCHEDULES, type DueScheduleRow } from '../../features/tasks/schedule-views.ts'
import { TaskWriter } from '../../features/tasks/task-writer.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { Rounds } from '../../kit/operations/rounds.ts'
import type { Services } from '../../kit/services.ts'

export const SCHEDULED_TASKS = 'scheduled-tasks'

const LOOK_MS = 5_000
const PAGE_ROWS = 100
/** Tasks that one schedule makes in one turn after a pause; more follow in the next. */
const CATCH_UP_MAX = 50
const AT_ONCE = 8
const NOTICE_CHARS_MAX = 1_000

/** Makes the tasks of due schedules, each once: its id is derived from schedule and due time. */
export class ScheduledTasks extends Rounds {
  private readonly services: ResourceServices & Pick<Services, 'clock' | 'logger'>
  private readonly schedules: ResourceWriter
  private readonly tasks: TaskWriter

  constructor(services: ResourceServices & Pick<Services, 'clock' | 'logger'>) {
    super(services.clock, LOOK_MS)
    this.services = services
    this.schedules = schedule.writer(services)
    this.tasks = new TaskWriter(services)
  }

  protected failed(error: unknown): void {
    this.services.logger.warn('due schedules could not be served', { error: String(error) })
  }

  /** A schedule that cannot be served now waits for the next look, and blocks none of the others. */
  protected async work(): Promise<void> {
    const { tables, clock, logger } = this.services
    const range = { field: 'makeAt', to: clock.now() }
    const question = { range, sort: { field: 'makeAt', order: 'asc' as const }, limit: PAGE_ROWS }
    for await (const page of pagesOf<DueScheduleRow>(tables, DUE_SCHEDULES.name, NO_ORGANIZATION, question)) {
      const failures: unknown[] = []
      await severalAtOnce(page, AT_ONCE, async ({ id, row }) => {
        if (!this.isClosed) await this.make(row.organizationId, id).catch((error: unknown) => failures.push(error))
      })
      if (failures.length > 0)
        logger.warn('due schedules could not be served', { schedules: failures.length, error: String(failures[0]) })
      if (this.isClosed) return
    }
  }

  private async make(organizationId: string, id: string): Promise<void> {
    const now = this.services.clock.now()
    for (let made = 0; made < CATCH_UP_MAX; made++) {
      const { state } = await this.schedules.load(id)
      const { values } = state
      const isDue =
        state.status === 'live' && values.isActive === true && values.nextAt !== undefined && makeAtOf(values) <= now
      if (!isDue) return
      const metadata = { organizationId, actor: `schedule:${id}` }
      const origin: WriteOrigin = { organizationId, now, ids: idSource(now), metadata }
      const notice = await this.makeTask(origin, id, values)
      const nextAt = nextDue(values, Date.parse(String(values.nextAt)))
      await this.schedules.update(origin, id, ({ nextAt: was, notice: _notice, ...others }) => ({
        ...others,
        ...(notice !== undefined && { notice }),
        // A change of the schedule meanwhile has set the due time.
        ...(was === values.nextAt ? nextAt !== undefined && { nextAt } : was !== undefined && { nextAt: was }),
      }))
    }
  }

  /**
   * Answers the reason if no task can ever be made for this due time, or the assignees left out: those who may no
   * longer have the task do not keep the others from it.
   */
  private async makeTask(origin: WriteOrigin, id: string, values: JsonObject): Promise<string | undefined> {
    const dueAt = String(values.nextAt)
    const { leadMinutes: _lead, window, ...content } = values.task as JsonObject
    const asked = values as unknown as Assigned
    const { assigneeIds, teamId } = await keptAssignees(this.services, origin.organizationId, asked)
    const leftOut = [
      ...asked.assigneeIds.filter((userId) => !assigneeIds.includes(userId)).map((userId) => `user ${userId}`),
      ...(asked.teamId !== undefined && teamId === null ? [`team ${asked.teamId}`] : []),
    ]
    const body = {
      ...content,
      _id: idFrom('scheduled-task', id, dueAt),
      flowId: values.flowId,
      hubId: values.hubId,
      assigneeIds,
      ...(teamId !== null && { teamId }),
      ...(window !== undefined && { window: windowAt(dueAt, window as JsonObject) }),
    }
    try {
      await this.tasks.create(origin, body, { scheduleId: id, dueAt })
    } catch (error) {
      if (!(error instanceof Failure) || error.status >= 500) throw error
      // Under this id it exists already, or was deleted.
      if (error.code !== 'conflict') return `No task was made for ${dueAt}: ${error.message}`.slice(0, NOTICE_CHARS_MAX)
    }
    if (leftOut.length === 0) return undefined
    const reason = `The task for ${dueAt} was made without who lacks its hub or is not of its team: ${leftOut.join(', ')}`
    return reason.slice(0, NOTICE_CHARS_MAX)
  }
}

const windowAt = (dueAt: string, { afterMinutes, lengthMinutes }: JsonObject): JsonObject => {
  const from = Date.parse(dueAt) + Number(afterMinutes) * 60_000
  return { from: new Date(from).toISOString(), to: new Date(from + Number(lengthMinutes) * 60_000).toISOString() }
}
