import { ShapeChecker } from '../features/geofences/shape-checker.ts'
import type { Services } from '../kit/services.ts'
import { backtestOf } from '../reactors/backtest-geofence.ts'
import { trackerLookups } from './lookups.ts'
import type { openReactors } from './reactors.ts'

/** What the routes of geofences need beside their tables. */
export const openGeofences = ({ log, tables, history, clock }: Services, { fences }: Awaited<ReturnType<typeof openReactors>>) => ({
  shapes: new ShapeChecker(clock),
  waitFencesInForce: fences.waitFencesInForce.bind(fences),
  runBacktest: backtestOf({ log, history, visibleTrackers: trackerLookups(tables).visibleTrackers }),
})
