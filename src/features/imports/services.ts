import type { EventLog } from '../../engines/event-log.ts'
import type { FileStore } from '../../engines/file-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { JobPlaces } from '../../kit/jobs/asking.ts'
import type { Quotas } from '../../kit/quotas/quotas.ts'

export interface ImportServices {
  log: EventLog
  tables: TableStore
  files: FileStore
  clock: Clock
  bytesMax: number
  quotas?: Quotas
  places: JobPlaces
  undoPlaces: JobPlaces
}
