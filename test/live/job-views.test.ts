import { test } from 'tap'
import { BACKTEST_VIEW } from '../../src/features/backtests/views.ts'
import { EXPORT_VIEW } from '../../src/features/exports/views.ts'
import { IMPORT_VIEW } from '../../src/features/imports/views.ts'
import { ROUTING_VIEW } from '../../src/features/routing/views.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { callerWith } from '../support/callers.ts'

const JOB = { userId: 'sender', hubId: 'hub' }
type View = { sees(caller: UserCaller, job: never): boolean }
const sees = (view: View, permissions: string[], fields: Partial<UserCaller>): boolean =>
  view.sees(callerWith(permissions, fields), JOB as never)

test('a job is told to those who may read it, whatever they may do with geofences', async (t) => {
  const sender = { userId: 'sender', hubIds: ['hub'] }
  const office = { userId: 'office', hubIds: 'all' as const }
  const other = { userId: 'other', hubIds: ['elsewhere'] }
  t.ok(sees(IMPORT_VIEW, ['import/data'], sender))
  t.ok(sees(IMPORT_VIEW, ['import/data'], office))
  t.notOk(sees(IMPORT_VIEW, ['import/data'], other))
  t.notOk(sees(IMPORT_VIEW, ['view/geofence'], office))
  t.ok(sees(ROUTING_VIEW, ['view/routing'], sender))
  t.notOk(sees(ROUTING_VIEW, ['view/routing'], other))
  t.notOk(sees(ROUTING_VIEW, ['view/geofence'], office))
  t.ok(sees(EXPORT_VIEW, [], sender))
  t.notOk(sees(EXPORT_VIEW, ['export/task'], office))
  t.same(
    [BACKTEST_VIEW, IMPORT_VIEW, ROUTING_VIEW, EXPORT_VIEW].map(({ isOfGeofences }) => isOfGeofences),
    [true, undefined, undefined, undefined],
  )
})
