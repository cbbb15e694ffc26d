import { TRANSITIONS, TRIPS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { Decided } from '../src/features/transitions/events.ts'
import { type DecidedAt, transitionsBlock, tripsBlock } from './decisions-block.ts'
import { type HistoryBlock, HistoryConsumer, type HistoryServices } from './history-consumer.ts'

export const DECISIONS_HISTORY = 'decisions-history'

/** One event of a transition stream; `decided` is absent for what decides nothing. */
export interface DecidedEntry {
  revision: number
  decided?: Decided
}

/** Puts transitions and trips of the streams `transitions-<partition>` into the history. */
export class DecisionsHistory extends HistoryConsumer<DecidedEntry> {
  constructor(services: HistoryServices) {
    super({
      ...services,
      name: DECISIONS_HISTORY,
      rowsOf: ({ decided }) => decided?.decisions.length ?? 0,
      blocks: (entries) =>
        decisionBlocks(
          entries.map(({ partition, entry }) => ({ ...entry, partition }) as DecidedAt),
          services.epoch,
        ),
    })
  }
}

/** The rows of transitions and of trips, where there are any. */
export const decisionBlocks = (events: readonly DecidedAt[], epoch: number): HistoryBlock[] => [
  ...blockOf(TRANSITIONS, transitionsBlock(events, epoch)),
  ...blockOf(TRIPS, tripsBlock(events, epoch)),
]

const blockOf = (table: string, block: Uint8Array | undefined): HistoryBlock[] =>
  block === undefined ? [] : [{ table, block }]
