import { TRANSITIONS, TRIPS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { Erased } from './erasures.ts'
import {
  EntryBuffer,
  type HistoryBlock,
  HistoryConsumer,
  type HistoryServices,
  type Placed,
} from './history-consumer.ts'
import { transitionVersionOf, tripVersionOf } from '../src/engines/clickhouse-sql/history-tables.ts'
import { encodeNativeBlock } from '../src/engines/clickhouse-sql/native-block.ts'
import type { Decided, Transition, TripChange } from '../src/features/transitions/events.ts'

export const DECISIONS_HISTORY = 'decisions-history'

/** One event of a transition stream; `decided` is absent for an event that decides nothing. */
export interface DecidedEntry {
  revision: number
  decided?: Decided
}

/** Puts transitions and trips of the streams `transitions-<partition>` into the history. */
export class DecisionsHistory extends HistoryConsumer<DecidedEntry> {
  constructor(services: HistoryServices) {
    const buffer = () => decisionBuffer(services.epoch, services.erasures.known)
    super({ ...services, name: DECISIONS_HISTORY, buffer, ageMsMax: 100 })
  }
}

export const decisionBuffer = (epoch: number, erased: Erased): EntryBuffer<DecidedEntry> =>
  new EntryBuffer(
    ({ decided }) => decided?.decisions.length ?? 0,
    (entries) => {
      const decisions = placed(entries).filter(
        ({ decision }) => erased.isEmpty || !erased.has(decision.organizationId, decision.trackerId, timeOf(decision)),
      )
      return [
        ...blockOf(TRANSITIONS, transitionsBlock(decisions, epoch)),
        ...blockOf(TRIPS, tripsBlock(decisions, epoch)),
      ]
    },
  )

const timeOf = (decision: Transition | TripChange): number =>
  decision.kind === 'transition' ? decision.at : decision.startedAt

const blockOf = (table: string, block: Uint8Array | undefined): HistoryBlock[] =>
  block === undefined ? [] : [{ table, block }]

interface PlacedDecision<Kind = Transition | TripChange> {
  decision: Kind
  partition: number
  revision: number
  ordinal: number
}

/** The transitions among the decisions, as a block for their table; undefined for none. The first logged wins. */
const transitionsBlock = (decisions: readonly PlacedDecision[], epoch: number): Uint8Array | undefined => {
  const rows = decisions.filter((row): row is PlacedDecision<Transition> => row.decision.kind === 'transition')
  if (rows.length === 0) return undefined
  const texts = (value: (transition: Transition) => string): string[] => rows.map(({ decision }) => value(decision))
  return encodeNativeBlock(
    [
      { name: 'organizationId', type: 'String', values: texts(({ organizationId }) => organizationId) },
      { name: 'at', type: "DateTime64(3, 'UTC')", values: times(rows.map(({ decision }) => decision.at)) },
      { name: '_id', type: 'String', values: texts(({ _id }) => _id) },
      { name: 'trackerId', type: 'String', values: texts(({ trackerId }) => trackerId) },
      { name: 'geofenceId', type: 'String', values: texts(({ geofenceId }) => geofenceId) },
      { name: 'geofenceGroupId', type: 'String', values: texts(({ geofenceGroupId }) => geofenceGroupId) },
      { name: 'type', type: 'String', values: texts(({ type }) => type) },
      { name: 'cause', type: 'String', values: texts(({ cause }) => cause) },
      { name: 'point', type: 'String', values: texts(({ point }) => JSON.stringify(point)) },
      { name: 'partition', type: 'UInt16', values: Uint16Array.from(rows, ({ partition }) => partition) },
      { name: 'revision', type: 'UInt64', values: BigUint64Array.from(rows, ({ revision }) => BigInt(revision)) },
      { name: 'ordinal', type: 'UInt32', values: Uint32Array.from(rows, ({ ordinal }) => ordinal) },
      {
        name: 'version',
        type: 'UInt64',
        values: BigUint64Array.from(rows, ({ revision }) => transitionVersionOf(epoch, revision)),
      },
    ],
    rows.length,
  )
}

/** The changes of trips as a block for their table; undefined for none. A finished trip wins over a running one. */
const tripsBlock = (decisions: readonly PlacedDecision[], epoch: number): Uint8Array | undefined => {
  const rows = decisions.filter((row): row is PlacedDecision<TripChange> => row.decision.kind !== 'transition')
  if (rows.length === 0) return undefined
  const texts = (value: (trip: TripChange) => string): string[] => rows.map(({ decision }) => value(decision))
  return encodeNativeBlock(
    [
      { name: 'organizationId', type: 'String', values: texts(({ organizationId }) => organizationId) },
      {
        name: 'startedAt',
        type: "DateTime64(3, 'UTC')",
        values: times(rows.map(({ decision }) => decision.startedAt)),
      },
      { name: '_id', type: 'String', values: texts(({ _id }) => _id) },
      { name: 'trackerId', type: 'String', values: texts(({ trackerId }) => trackerId) },
      { name: 'explicit', type: 'UInt8', values: Uint8Array.from(rows, ({ decision }) => (decision.explicit ? 1 : 0)) },
      { name: 'finishedAtMs', type: 'Int64', values: times(rows.map(({ decision }) => decision.finishedAt ?? 0)) },
      { name: 'distance', type: 'Float64', values: Float64Array.from(rows, ({ decision }) => decision.distance) },
      { name: 'point', type: 'String', values: texts(({ point }) => JSON.stringify(point)) },
      {
        name: 'version',
        type: 'UInt64',
        values: BigUint64Array.from(rows, ({ revision, decision }) =>
          tripVersionOf(epoch, revision, decision.kind === 'tripFinished'),
        ),
      },
    ],
    rows.length,
  )
}

const placed = (entries: readonly Placed<DecidedEntry>[]): PlacedDecision[] =>
  entries.flatMap(({ partition, entry: { revision, decided } }) =>
    (decided?.decisions ?? []).map((decision, i) => ({
      decision,
      partition,
      revision,
      ordinal: (decided as Decided).ordinal + i,
    })),
  )

const times = (values: readonly number[]): BigInt64Array => BigInt64Array.from(values, (value) => BigInt(value))
