import {
  BACKTEST_DELETED,
  BACKTEST_FAILED,
  BACKTEST_FINISHED,
  BACKTEST_PROGRESSED,
  BACKTEST_REQUESTED,
  BACKTEST_STARTED,
  BACKTEST_STREAMS,
} from '../src/features/backtests/events.ts'
import { BACKTESTS, evolveBacktest, type BacktestRow } from '../src/features/backtests/views.ts'
import { factOf } from '../src/kernel/event.ts'
import { idOfStream } from '../src/kit/commands/declared-event.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'

/** Every back-test that is a job, until it is deleted or its time is over: what is to be done at a start, and what has expired. */
export const backtests: Projection = {
  name: 'backtests',
  version: 1,
  tables: [BACKTESTS],
  prefixes: [BACKTEST_STREAMS],
  inputs: [
    BACKTEST_REQUESTED,
    BACKTEST_STARTED,
    BACKTEST_PROGRESSED,
    BACKTEST_FINISHED,
    BACKTEST_FAILED,
    BACKTEST_DELETED,
  ],
  apply: async (event, rows) => {
    const id = idOfStream(event.stream)
    const fact = factOf(event)
    const { organizationId } = fact.data as { organizationId: string }
    const row = await rows.get<BacktestRow>(BACKTESTS.name, organizationId, id)
    const next = evolveBacktest(id, row, fact)
    if (next === undefined) rows.delete(BACKTESTS.name, organizationId, id)
    else rows.put(BACKTESTS.name, organizationId, id, next)
  },
}
