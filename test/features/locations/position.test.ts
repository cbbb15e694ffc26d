import { test } from 'tap'
import {
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
} from '../../../src/features/locations/events.ts'
import { positionOf, positionText } from '../../../src/features/locations/views.ts'

test('a position as text is the position as JSON, whatever the point has', (t) => {
  const point = {
    trackerId: 'a',
    recordedAt: 1_767_225_600_123,
    loggedAt: 1_767_225_599_000,
    lat: -521_234_567,
    lng: 10,
    accuracy: 1,
    altitude: -12_345,
    speed: 1_234,
    heading: 3_599,
    battery: 10_000,
  }
  const members = [HAS_SPEED, HAS_HEADING, HAS_ALTITUDE, HAS_ACCURACY, HAS_BATTERY]
  const tracker = { name: 'Van "1"\n', userId: 'u', vehicleId: 'v' }
  for (let which = 0; which < 2 ** members.length; which++) {
    const flags = members.filter((_, i) => (which >> i) & 1).reduce((sum, flag) => sum | flag, 0)
    t.same(
      JSON.parse(positionText({ ...point, flags }, tracker, 'stale')),
      JSON.parse(JSON.stringify(positionOf({ ...point, flags }, tracker, 'stale'))),
    )
  }
  t.end()
})
