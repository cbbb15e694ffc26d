import { test } from 'tap'
import { writeUuid } from '../../../../src/engines/clickhouse-sql/native-block.ts'
import { formatterOf } from '../../../../src/features/locations/history/formats.ts'
import { PointJsonBytes } from '../../../../src/features/locations/history/point-json-bytes.ts'
import { POINT_MEMBERS, rowJson } from '../../../../src/features/locations/history/point-json.ts'
import { PointBuffer, type PointRows } from '../../../../src/features/locations/history/point-rows.ts'
import { gpx } from '../../../../src/features/locations/history/track-formats.ts'
import { seeded } from '../../../support/random.ts'
import { uuidOf } from '../../../support/trace-batches.ts'

const random = seeded(23)
const whole = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1))
const one = <Item>(items: readonly Item[]): Item => items[whole(0, items.length - 1)]
/** A number with many or few digits, either sign. */
const signed = (max: number): number => one([0, 1, -1, max, -max, whole(-max, max), whole(-max / 1e6, max / 1e6) * 1e6])

const TIMES = [0, 36 ** 7 - 1, 36 ** 7, 36 ** 8 - 1, 36 ** 8, Date.parse('2026-05-01T00:00:59.999Z')]
const ATTRIBUTES = ['', '', '{"a":1}', '{"name":"Łódź 🚌"}', `{"long":"${'ä'.repeat(3_000)}"}`]
const trackers = Array.from({ length: 3 }, (_, i) => uuidOf(`tracker ${i}`))

const randomRows = (count: number): PointRows => {
  const { rows } = new PointBuffer(count)
  let time = Date.parse('2026-05-01T00:00:00Z')
  let tracker = trackers[0]
  for (let row = 0; row < count; row++) {
    if (random() < 0.2) tracker = one(trackers)
    time = random() < 0.05 ? one(TIMES) : time + whole(0, 70_000)
    writeUuid(tracker, rows.tracker, row * 16)
    rows.recordedAt[row] = time
    rows.lat[row] = signed(900_000_000)
    rows.lng[row] = signed(1_800_000_000)
    rows.flags[row] = whole(0, 65_535)
    rows.accuracy[row] = whole(0, 2_000_000)
    rows.altitude[row] = signed(2_000_000)
    rows.speed[row] = whole(0, 20_000)
    rows.heading[row] = whole(0, 3_600)
    rows.battery[row] = whole(0, 100)
    rows.attributes[row] = one(ATTRIBUTES)
  }
  rows.count = count
  return rows
}

const textOf = (bytes: string | Uint8Array): string => Buffer.from(bytes as Uint8Array).toString()

test('rows as bytes are what they are as text, whatever they hold', async (t) => {
  const bytes = new PointJsonBytes()
  for (let round = 0; round < 60; round++) {
    const count = whole(1, 200)
    const rows = randomRows(count)
    const from = whole(0, count - 1)
    const to = whole(from + 1, count)
    const texts = Array.from({ length: to - from }, (_, i) => rowJson(rows, from + i))
    const written = textOf(bytes.write(rows, from, to, '[', ',', ']'))
    if (written !== `[${texts.join()}]`) t.equal(written, `[${texts.join()}]`, `round ${round}`)
  }
  t.same(JSON.parse(textOf(bytes.write(randomRows(50), 0, 50, '[', ',', ']'))).length, 50)
})

test('a whole answer is the same as one with every member named', async (t) => {
  const rows = randomRows(300)
  for (const format of ['json', 'array', 'ndjson'] as const) {
    const [all, named] = [undefined, new Set(POINT_MEMBERS)].map((members) => {
      const formatter = formatterOf(format, { members })
      const head = textOf(formatter.start())
      const first = textOf(formatter.rows(rows, 0, 7))
      return head + first + textOf(formatter.rows(rows, 7, 300)) + textOf(formatter.end(null, 500))
    })
    t.equal(all, named, format)
  }
})

test('GPX has -180 for the antimeridian', (t) => {
  const rows = randomRows(2)
  rows.lng.set([1_800_000_000, 1_799_999_999])
  const written = textOf(
    gpx(
      () => 'A',
      () => true,
    ).rows(rows, 0, 2),
  )
  t.same(
    [...written.matchAll(/lon="([^"]*)"/g)].map(([, lon]) => lon),
    ['-180', '179.9999999'],
  )
  t.end()
})
