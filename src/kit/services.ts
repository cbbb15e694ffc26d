import type { EventLog } from '../engines/event-log.ts'
import type { FileStore } from '../engines/file-store.ts'
import type { HistoryStore } from '../engines/history-store.ts'
import type { TableStore } from '../engines/table-store.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Processes } from './commands/process.ts'
import type { Checkpoints } from './consumers/settle.ts'
import type { Keyring } from './keys/keyring.ts'
import type { Quotas } from './quotas/quotas.ts'

/** Services for features and reactors; each takes the members that it needs. */
export interface Services {
  log: EventLog
  /** The tables of `checkpoints`. */
  tables: TableStore
  checkpoints: Checkpoints
  history: HistoryStore
  files: FileStore
  clock: Clock
  keyring: Keyring
  logger: Logger
  /** Runs the commands that write several streams. */
  processes: Processes
  /** Left out, nothing is bounded: a command already decided must not be refused. */
  quotas?: Quotas
  partitions: number
}
