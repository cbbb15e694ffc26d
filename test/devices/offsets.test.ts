import { test } from 'tap'
import { readOsmAnd } from '../../src/devices/osmand/read.ts'
import { readTraccarForm } from '../../src/devices/traccar/read.ts'

const NOW = Date.parse('2026-05-04T09:30:00Z')
const TIME = Date.parse('2026-05-04T08:30:15Z')

test('a written time of a query: with an offset, also one whose plus was not escaped', async (t) => {
  const timeIn = (read: typeof readOsmAnd, query: string) =>
    read(Object.fromEntries(new URLSearchParams(`lat=52&lon=21&timestamp=${query}`)), NOW).points[0].recordedAt
  for (const read of [readOsmAnd, readTraccarForm])
    for (const time of [
      '2026-05-04T08:30:15Z',
      '2026-05-04 08:30:15',
      '2026-05-04T10:30:15%2B02:00',
      '2026-05-04T10:30:15+02:00',
      '2026-05-04T10:30:15.000+0200',
      '2026-05-04T01:00:15-07:30',
      '1777883415',
      '1777883415000',
    ])
      t.equal(timeIn(read, time), TIME, time)
  for (const time of ['2026-05-04+08:30', '08:30:15', '2026-05-04T10:30:15+2'])
    t.ok(Number.isNaN(timeIn(readOsmAnd, time)), `${time} is no time`)
})
