import { askedSnapshot, KEEPING_LOCATIONS } from '../../src/operations/upkeep.ts'
import { LogConsumers } from '../../src/reactors/sweep/log-consumers.ts'
import { locationSweep } from '../../src/reactors/sweep/truncate-locations.ts'
import { PARTITIONS } from './host.ts'
import type { Asking } from './told.ts'

/** What is older goes: less than faults last, so that consumers that stand still hold the log back. */
const KEEP_MS = 1_500

/** Truncates the log of points as the hourly upkeep does, behind snapshots of the matcher. */
export const sweepLocations = (clients: Asking): void =>
  clients.ask(
    async ({ services }) => {
      const consumers = new LogConsumers(services!, KEEPING_LOCATIONS)
      const { sweep } = locationSweep(services!, {
        keepMs: KEEP_MS,
        consumersAt: (partition) => consumers.checkpointsAt(partition),
        snapshot: (partition, through) => askedSnapshot(services!, partition, through),
      })
      for (let partition = 0; partition < PARTITIONS; partition++) await sweep(partition)
    },
    () => void clients.open--,
    () => 'later' as const, // no snapshot in time: the next hour's
  )
