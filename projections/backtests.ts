import { BACKTEST, BACKTESTS } from '../src/features/backtests/views.ts'
import { jobRows } from '../src/kit/jobs/rows.ts'

/** Every back-test that is a job, until it is deleted or expires. */
export const backtests = jobRows(BACKTEST, BACKTESTS)
