import type { EventLog } from '../../engines/event-log.ts'
import { withoutInternal } from '../../features/tasks/views.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import { withoutFiles } from '../../kit/files/attached-file.ts'
import { rowAfter, type ResourceData } from '../../kit/commands/declared-event.ts'

interface Left {
  revision: number
  row: Row
  bytes: number
  /** State after the event before, if that was read lately too. */
  before?: Left
}

/** Bytes of events whose rows are kept: room for some 8,000 waiting runs, as a row was read when its run was owed. */
const KEPT_BYTES = 8 * 1024 * 1024
const ROW_BYTES = 500
/** Rows of larger events are read again. */
const KEPT_BYTES_MAX = 8 * 1024

const weightOf = ({ bytes, before }: Left): number => bytes + (before?.bytes ?? 0)

/**
 * Tasks and records according to their own streams. A recently read event is not read again: its data never changes,
 * and whether it is still the last one is checked each time.
 */
export class SubjectRows {
  private readonly log: Pick<EventLog, 'read' | 'head'>
  private readonly known = new RecentMap<string, Left>(KEPT_BYTES, weightOf)

  constructor(log: Pick<EventLog, 'read' | 'head'>) {
    this.log = log
  }

  /** The row after an event that was read anyway. */
  note(event: RecordedEvent, data: ResourceData): Row {
    const { stream, revision } = event
    const row: Row = withoutInternal(withoutFiles(rowAfter(event, data)))
    if (event.data.byteLength > KEPT_BYTES_MAX) return row
    const known = this.known.get(stream)
    if (known !== undefined && known.revision >= revision) return row
    const left = { revision, row, bytes: event.data.byteLength + ROW_BYTES }
    const before = known?.revision === revision - 1 ? { ...known, before: undefined } : undefined
    this.known.set(stream, before === undefined ? left : { ...left, before })
    return row
  }

  /** The present row; the last one of a deleted subject. */
  async now(stream: string, organizationId: string): Promise<Row | undefined> {
    const known = this.known.get(stream)
    if (known !== undefined && (await this.log.head(stream)) === known.revision) return ofOne(known.row, organizationId)
    const [event] = await this.log.read(stream, 'end', 1, 'backwards')
    return this.rowOf(event, organizationId)
  }

  /** The row after the event of that revision; undefined before the first. */
  async at(stream: string, organizationId: string, revision: number): Promise<Row | undefined> {
    if (revision < 0) return undefined
    const known = this.known.get(stream)
    for (const left of [known, known?.before]) if (left?.revision === revision) return ofOne(left.row, organizationId)
    const [event] = await this.log.read(stream, revision, 1)
    return this.rowOf(event, organizationId)
  }

  private rowOf(event: RecordedEvent | undefined, organizationId: string): Row | undefined {
    if (event === undefined) return undefined
    const data = dataOf<ResourceData>(event)
    return data.values === undefined ? undefined : ofOne(this.note(event, data), organizationId)
  }
}

const ofOne = (row: Row, organizationId: string): Row | undefined =>
  row.organizationId === organizationId ? row : undefined
