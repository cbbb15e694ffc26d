import { HistoryRows } from '../src/engines/clickhouse-sql/rows.ts'
import { runsStream } from '../src/features/automations/events.ts'
import { transitionStream } from '../src/features/transitions/events.ts'
import { locationStream, partitionOf } from '../src/features/locations/events.ts'
import type { Settle } from '../src/kit/consumers/settle.ts'
import type { Settlement } from '../src/kit/http/route.ts'
import type { Services } from '../src/kit/services.ts'
import { DECISIONS_HISTORY } from './decisions-history.ts'
import { historyConsumer } from './history-checkpoints.ts'
import { LOCATION_HISTORY } from './location-history.ts'
import { RUNS_HISTORY } from './runs-history.ts'

type ListedServices = Pick<Services, 'history' | 'clock' | 'partitions'> & { settle: Settle }

/** Time for which a read that finds nothing waits for the history to follow. */
const CATCH_UP_MS = 1_000

export const listedRows = ({ history, clock }: ListedServices): HistoryRows => new HistoryRows(history, clock)

/** Trips from the history; a missing one is looked up again when it has everything logged. */
export const listedDecisions = (services: ListedServices): HistoryRows =>
  caughtUpRows(services, DECISIONS_HISTORY, transitionStream)

/** Runs of automations, as `listedDecisions`. */
export const listedRuns = (services: ListedServices): HistoryRows => caughtUpRows(services, RUNS_HISTORY, runsStream)

const caughtUpRows = (
  { history, clock, settle, partitions }: ListedServices,
  consumer: string,
  streamOf: (partition: number) => string,
): HistoryRows =>
  new HistoryRows(history, clock, () => {
    const steps = Array.from({ length: partitions }, (_, partition) => stepOf(consumer, streamOf, partition))
    return settle({ types: [], position: -1 }, CATCH_UP_MS, steps)
  })

/** Resolves when the history has the points of a tracker that were logged before the call, or after a while. */
export const pointsListed =
  ({ settle, partitions }: Pick<ListedServices, 'settle' | 'partitions'>) =>
  (trackerId: string): Promise<unknown> =>
    settle({ types: [], position: -1 }, CATCH_UP_MS, [
      stepOf(LOCATION_HISTORY, locationStream, partitionOf(trackerId, partitions)),
    ])

const stepOf = (consumer: string, streamOf: (partition: number) => string, partition: number): Settlement => ({
  consumer: historyConsumer(consumer, partition),
  stream: streamOf(partition),
  source: String(partition),
})
