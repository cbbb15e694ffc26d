import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'

/** Rows as a projection sees them while a batch is applied: reads see what earlier events of the batch wrote. */
export interface Rows {
  get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined>
  /** Rows by one field declared `equality`. */
  findBy<R extends Row>(table: string, scope: string, field: string, value: string): Promise<{ id: string; row: R }[]>
  put(table: string, scope: string, id: string, row: Row, expiresAt?: number): void
  delete(table: string, scope: string, id: string): void
}

/** Events in, rows out. No clock, no network, no commands; the same events give the same rows, also when applied twice. */
export interface Projection {
  name: string
  /** Raise it when the shape of rows changes: the tables are then built anew beside the live ones and swapped. */
  version: number
  tables: readonly TableDeclaration[]
  /** Categories of streams that it reads, with the dash, such as `hub-`. */
  prefixes: readonly string[]
  /** Types of the events that can change a row; a write waits for the projections that name its events here. */
  inputs: readonly string[]
  apply(event: RecordedEvent, rows: Rows): Promise<void> | void
}

export interface ProjectionServices {
  log: EventLog
  tables: TableStore
  clock: Clock
  logger: Logger
}
