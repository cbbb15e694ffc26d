import type { TableStore } from '../../engines/table-store.ts'
import { breathe } from '../../kernel/breath.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { seesTask, TASKS, type TaskRow } from '../tasks/views.ts'
import type { RowKey, ReportRow } from './answer.ts'
import { localDates } from './periods.ts'
import { rounded } from './summary.ts'

export type GroupBy = 'assigneeId' | 'hubId' | 'teamId' | 'flowId' | 'day'

export interface TaskQuestion {
  /** Inclusive, ms since the epoch. */
  from: number
  to: number
  groupBy: GroupBy
  timeZone: string
  /** Only tasks of one of these users, hubs, teams. */
  assigneeIds?: readonly string[]
  hubIds?: readonly string[]
  teamIds?: readonly string[]
}

interface Counts {
  created: number
  finished: number
  cancelled: number
  late: number
  onTime: number
  started: number
  msToStart: number
  worked: number
  msOfWork: number
}

const DAY_MS = 86_400_000
const ROWS_AT_ONCE = 256

/** Outcomes of the tasks that the caller sees, by group. Events between the bounds count, each by its own time. */
export async function* taskRows(
  tables: Pick<TableStore, 'scan'>,
  caller: UserCaller,
  question: TaskQuestion,
  after: RowKey | undefined,
  signal: AbortSignal,
): AsyncGenerator<ReportRow[]> {
  const groups = new TaskGroups(question)
  for await (const { row } of tables.scan<TaskRow>(TASKS, caller.organizationId)) {
    await breathe()
    signal.throwIfAborted()
    if (seesHubs(caller, [row.hubId]) && seesTask(caller, row) && isAsked(row, question)) groups.add(row)
  }
  const rows = groups.rows().filter(({ place }) => after === undefined || place[0] > after[0])
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) yield rows.slice(at, at + ROWS_AT_ONCE)
}

const isAsked = (task: TaskRow, { assigneeIds, hubIds, teamIds }: TaskQuestion): boolean =>
  (assigneeIds === undefined || task.assigneeIds.some((id) => assigneeIds.includes(id))) &&
  (hubIds === undefined || hubIds.includes(task.hubId)) &&
  (teamIds === undefined || (task.teamId !== undefined && teamIds.includes(task.teamId)))

/** Counts tasks by group; the key of unassigned ones is null. */
export class TaskGroups {
  private readonly question: TaskQuestion
  private readonly dateAt: (atMs: number) => number
  private readonly counts = new Map<string, Counts>()

  constructor(question: TaskQuestion) {
    this.question = question
    this.dateAt = localDates(question.timeZone)
  }

  add(task: TaskRow): void {
    const [created, started] = [Date.parse(task.createdAt), timeOf(task.startedAt)]
    const finished = task.state === 'finished' ? timeOf(task.finishedAt) : undefined
    this.count(task, created, (counts) => void counts.created++)
    this.count(task, started, (counts) => {
      counts.started++
      counts.msToStart += Math.max(0, (started as number) - created)
    })
    this.count(
      task,
      task.state === 'cancelled' ? timeOf(task.cancelledAt) : undefined,
      (counts) => void counts.cancelled++,
    )
    this.count(task, finished, (counts) => {
      counts.finished++
      const due = timeOf(task.window?.to ?? task.dueAt)
      if (due !== undefined) counts[(finished as number) > due ? 'late' : 'onTime']++
      if (started === undefined) return
      counts.worked++
      counts.msOfWork += Math.max(0, (finished as number) - started)
    })
  }

  /** By key; unassigned first. */
  rows(): ReportRow[] {
    const keys = [...this.counts.keys()].sort()
    return keys.map((key) => ({ place: [key], row: shown(key, this.counts.get(key) as Counts) }))
  }

  private count(task: TaskRow, at: number | undefined, add: (counts: Counts) => void): void {
    const { from, to } = this.question
    if (at === undefined || at < from || at > to) return
    for (const key of this.keysOf(task, at)) {
      let counts = this.counts.get(key)
      if (counts === undefined) this.counts.set(key, (counts = none()))
      add(counts)
    }
  }

  private keysOf(task: TaskRow, at: number): readonly string[] {
    const { groupBy } = this.question
    if (groupBy === 'day') return [new Date(this.dateAt(at) * DAY_MS).toISOString().slice(0, 10)]
    if (groupBy !== 'assigneeId') return [task[groupBy] ?? '']
    const asked = this.question.assigneeIds
    const ids = asked === undefined ? task.assigneeIds : task.assigneeIds.filter((id) => asked.includes(id))
    return ids.length === 0 ? [''] : ids
  }
}

const none = (): Counts => ({
  created: 0,
  finished: 0,
  cancelled: 0,
  late: 0,
  onTime: 0,
  started: 0,
  msToStart: 0,
  worked: 0,
  msOfWork: 0,
})

const timeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Date.parse(text))

const shown = (key: string, counts: Counts): ReportRow['row'] => ({
  key: key === '' ? null : key,
  created: counts.created,
  finished: counts.finished,
  cancelled: counts.cancelled,
  late: counts.late,
  onTime: counts.onTime,
  meanMinutesToStart: counts.started === 0 ? null : rounded(counts.msToStart / counts.started / 60_000),
  meanMinutesOfWork: counts.worked === 0 ? null : rounded(counts.msOfWork / counts.worked / 60_000),
})
