import { test } from 'tap'
import type { Caller } from '../../../../src/kernel/caller.ts'
import { packPoints, PackedFrame, type PackContext } from '../../../../src/features/locations/ingest/pack-points.ts'
import { PointScanner } from '../../../../src/features/locations/ingest/point-scanner.ts'
import { idFrom } from '../../../../src/kit/commands/ids.ts'
import { FixedTrackers } from '../../../support/ingest.ts'
import { seeded } from '../../../support/random.ts'

const ORG = idFrom('organization', 'a')
const NOW = Date.parse('2026-03-01T12:00:00Z')
const trackers = new FixedTrackers(4)
for (let i = 0; i < 5; i++) trackers.add(ORG, `bus-${i}`)
const caller: Caller = { kind: 'ingestKey', organizationId: ORG, keyId: 'k', autoCreate: false }
const context: PackContext = { caller, resolver: trackers, now: NOW, retentionMs: 30 * 86_400_000 }

const shown = ({ columns, index, rejected, unresolved }: PackedFrame) => ({
  rows: Array.from({ length: columns.count }, (_, i) => [
    index[i],
    columns.tracker[i]?.trackerId,
    columns.recordedAt[i],
    columns.lat[i],
    columns.lng[i],
    columns.flags[i],
    columns.accuracy[i],
    columns.altitude[i],
    columns.speed[i],
    columns.heading[i],
    columns.battery[i],
    columns.attributes[i],
  ]),
  rejected: [...rejected],
  unresolved: [...unresolved],
})

const whole = (points: unknown[]) => {
  const frame = new PackedFrame(16)
  packPoints(points, context, frame)
  return shown(frame)
}
const scanner = new PointScanner()
const frame = new PackedFrame(16)
const scan = (text: string) => {
  const seq = scanner.scan(new Uint8Array(Buffer.from(text)), context, frame)
  return seq === undefined ? undefined : { seq, ...shown(frame) }
}

test('a frame is read from its bytes with the very result of the whole way', async (t) => {
  const next = seeded(7)
  const maybe = (name: string, value: () => unknown) => (next() < 0.5 ? { [name]: value() } : {})
  let scanned = 0
  for (let round = 0; round < 2_000; round++) {
    const points = Array.from({ length: 1 + Math.floor(next() * 5) }, () => {
      const at = NOW - Math.floor(next() * 40 * 86_400_000 - 86_400_000 * 2)
      const time = [
        at,
        new Date(at).toISOString(),
        new Date(at).toISOString().replace(/\.\d+Z/, 'Z'),
        new Date(at).toISOString().replace('Z', '+02:00'),
        at + next(),
      ][Math.floor(next() * 5)]
      const number = (span: number) =>
        [next() * span, Math.round(next() * span), Number((next() * span).toFixed(5)), -0, span][Math.floor(next() * 5)]
      return {
        ...(next() < 0.9
          ? { externalId: `bus-${Math.floor(next() * 6)}` }
          : { trackerId: trackers.trackers.get(`${ORG} bus-1`)?.trackerId }),
        recordedAt: time,
        lat: number(180) - 90,
        lng: number(360) - 180,
        ...maybe('accuracy', () => number(50)),
        ...maybe('altitude', () => number(3000) - 100),
        ...maybe('speed', () => number(40) - 1),
        ...maybe('heading', () => number(361)),
        ...maybe('battery', () => number(1)),
      }
    })
    const text = JSON.stringify(points)
    const list = scan(text)
    if (list === undefined) continue
    scanned++
    t.same(list, { seq: 0, ...whole(JSON.parse(text)) }, text)
    t.same(scan(`{"type":"points","seq":${round + 1},"points":${text}}`), { ...list, seq: round + 1 })
    t.same(scan(`{"type":"points","points":${text}}`), list)
  }
  t.ok(scanned > 1_200, `${scanned} frames were read the short way`)
})

test('whatever is written otherwise or wrong is left to the whole way', async (t) => {
  const good = '{"externalId":"bus-1","recordedAt":"2026-03-01T11:00:00.000Z","lat":52.2,"lng":21}'
  t.ok(scan(`[${good}]`))
  for (const text of [
    '',
    '[',
    '[]',
    '{}',
    good,
    `[${good}`,
    `[${good},]`,
    `[${good}] `,
    `[ ${good}]`,
    `[${good}]]`,
    `{"type":"points","seq":1,"points":[${good}]`,
    `{"type":"points","seq":0,"points":[${good}]}`,
    `{"type":"points","seq":-1,"points":[${good}]}`,
    `{"type":"points","seq":1.5,"points":[${good}]}`,
    `{"type":"points","seq":1,"points":[${good}],"x":1}`,
    `{"seq":1,"type":"points","points":[${good}]}`,
    `{"type":"other","points":[${good}]}`,
  ])
    t.equal(scan(text), undefined, text)
  for (const [from, to] of [
    ['52.2', '052.2'],
    ['52.2', '5e1'],
    ['52.2', '+52'],
    ['52.2', '.5'],
    ['52.2', '52.'],
    ['52.2', '-'],
    ['52.2', 'NaN'],
    ['52.2', '"52"'],
    ['52.2', '91'],
    ['52.2', 'null'],
    ['52.2', '5 2'],
    ['52.2', '52.2,"lat":1'],
    ['"lat":52.2,', ''],
    ['lat', 'lot'],
    ['lat', 'latt'],
    ['bus-1', 'b\\u0075s-1'],
    ['bus-1', 'bus\u00e9'],
    ['bus-1', 'bus\n'],
    ['2026-03-01T', '2026-02-30T'],
    ['11:00', '25:00'],
    ['11:00', '11:60'],
    ['T11', ' x'],
    ['Z"', '"'],
    ['"lng":21', '"lng":21,"foo":1'],
    ['"lng":21', '"lng":21,"trip":"start"'],
    ['"lng":21', '"lng":21,"attributes":{}'],
    ['"lng":21', '"lng":21,"heading":361'],
    ['"lng":21', '"lng":21,"battery":-0.1'],
    ['"lng":21', '"lng":21,"accuracy":-1'],
    ['"lng":21', '"lng":21,"speed":99999999'],
    ['"lng":21', '"lng":181'],
    ['"2026', '2026'],
  ] as const)
    t.equal(scan(`[${good.replace(from, to)}]`), undefined, `${from} → ${to}`)
  const bytes = Buffer.from(`{"type":"points","seq":1,"points":[${good}]}`)
  for (let length = 0; length < bytes.length; length++)
    if (scanner.scan(bytes.subarray(0, length), context, frame) !== undefined) t.fail(`cut to ${length}`)
  t.equal(scan(`[${Array(10_001).fill(good).join()}]`), undefined, 'too many')
  t.equal(scan(`[${Array(10_000).fill(good).join()}]`)?.rows.length, 10_000)
})
