import { Bench } from 'tinybench'
import type { EventLog } from '../src/engines/event-log.ts'
import { BATCHER_LIMITS, Batcher } from '../src/features/locations/ingest/batcher.ts'
import { writeBinaryFrame, type BinaryPoint } from '../src/features/locations/ingest/binary-frame-writer.ts'
import { ingestChannel } from '../src/features/locations/ingest/channel.ts'
import { readFrame, type Frame } from '../src/features/locations/ingest/frame.ts'
import { PointStore } from '../src/features/locations/ingest/store.ts'
import type { KnownTracker, TrackerResolver } from '../src/features/trackers/views.ts'
import { partitionOf } from '../src/features/locations/events.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom } from '../src/kit/commands/ids.ts'

/**
 * Cost of a frame from the socket's bytes to the queue of its partition, in µs a point, and a whole connection with a
 * log that answers at once: frames of 100 points and of one, JSON and binary.
 */
const PARTITIONS = 16
const organizationId = idFrom('bench', 'organization')
const caller = { kind: 'ingestKey', organizationId, keyId: 'bench', autoCreate: false } as const
const now = Date.now()

const trackers = new Map<string, KnownTracker>()
for (let i = 0; i < 1000; i++) {
  const trackerId = idFrom('bench', i)
  trackers.set(`bus-${i}`, {
    trackerId,
    organizationId,
    partition: partitionOf(trackerId, PARTITIONS),
    mark: 0,
    index: 0,
  })
}
const resolver: TrackerResolver = {
  known: (_, trackerId, externalId) => trackers.get(externalId ?? trackerId ?? '') ?? 'unknown_tracker',
  resolve: async () => [],
  listed: async () => {},
}
let revision = 0
const log = { append: async () => ({ revision: revision++, position: revision }) } as unknown as EventLog
const logger = { debug() {}, info() {}, warn() {}, error() {} }
const batcher = new Batcher({
  log,
  clock: systemClock,
  logger,
  partitions: PARTITIONS,
  limits: BATCHER_LIMITS,
  onAppended: () => {},
  startAppendTimer: () => () => {},
})
const ingest = new PointStore({
  batcher,
  resolver,
  clock: systemClock,
  logger,
  retentionMs: 365 * 86_400_000,
  count: () => {},
})

const point = (i: number): BinaryPoint => ({
  externalId: `bus-${i % 50}`,
  recordedAt: now - 100_000 + i * 100,
  lat: Number((52.2 + (i % 997) * 1.37e-5).toFixed(7)),
  lng: Number((21 + (i % 991) * 1.37e-5).toFixed(7)),
  speed: 11.25,
  heading: 270,
  accuracy: 4.5,
})
const json = (points: BinaryPoint[]) =>
  points.map((one) => ({ ...one, recordedAt: new Date(one.recordedAt).toISOString() }))
const bytes = (text: string) => new Uint8Array(Buffer.from(text)).buffer as ArrayBuffer
const hundred = Array.from({ length: 100 }, (_, i) => point(i))
const frames = {
  'JSON, 100 points': bytes(JSON.stringify({ type: 'points', seq: 1, points: json(hundred) })),
  'JSON, 100 points, epoch ms': bytes(JSON.stringify({ type: 'points', seq: 1, points: hundred })),
  'JSON, 1 point': bytes(JSON.stringify({ type: 'points', seq: 1, points: json([point(0)]) })),
  'binary, 100 points': writeBinaryFrame(1, hundred).buffer,
  'binary, 100 points of one tracker': writeBinaryFrame(
    1,
    hundred.map((one) => ({ ...one, externalId: 'bus-1' })),
  ).buffer,
  'binary, 1 point': writeBinaryFrame(1, [point(0)]).buffer,
}
let sink = 0
const bench = new Bench({ time: 700 })
for (const [name, data] of Object.entries(frames)) {
  const isBinary = name.startsWith('binary')
  if (!isBinary) {
    bench.add(`scan: ${name}`, () => {
      sink += ingest.scan(caller, new Uint8Array(data))?.frame.columns.count ?? Number.NaN
    })
  }
  bench.add(`pack: ${name}`, () => {
    const frame = ingest.pack(caller, (readFrame(data, isBinary) as Frame).content)
    sink += frame.columns.count
  })
}
await bench.run()
for (const { name, result } of bench.tasks) {
  const points = name.includes('100') ? 100 : 1
  const us = (result as { latency: { p50: number } }).latency.p50 * 1000
  process.stdout.write(`${name.padEnd(36)} ${(us / points).toFixed(3)} µs/point  ${us.toFixed(2)} µs/frame\n`)
}

/** A connection that always has a window of frames under way. */
const run = async (name: string, points: readonly BinaryPoint[], isBinary: boolean, frameCount: number) => {
  let acked = 0
  let sent = 0
  let wake = () => {}
  const socket = {
    send: (text: string) => {
      if (text.startsWith('{"type":"ack"')) {
        acked = Number(text.slice(20, -1))
        wake()
      }
      return 0
    },
    bufferedBytes: () => 0,
    close: (code: number, reason: string) => {
      throw new Error(`${code} ${reason}`)
    },
    address: '',
  }
  const connection = ingestChannel(ingest).open(socket, caller)
  const messages = Array.from({ length: 256 }, (_, k) => {
    const later = points.map((one) => ({ ...one, recordedAt: one.recordedAt + k * 20_000 - 6_000_000 }))
    return isBinary ? writeBinaryFrame(0, later).buffer : bytes(JSON.stringify({ type: 'points', points: json(later) }))
  })
  const start = process.cpuUsage()
  while (acked < frameCount) {
    while (sent < frameCount && sent - acked < 64) connection.message(messages[sent++ % 256], isBinary)
    if (acked < sent)
      await new Promise<void>((done) => {
        wake = done
      })
  }
  const { user, system } = process.cpuUsage(start)
  const seconds = (user + system) / 1e6
  process.stdout.write(
    `${name.padEnd(36)} ${((seconds * 1e6) / frameCount / points.length).toFixed(3)} µs/point  ${Math.round(frameCount / seconds)} frames a CPU second\n`,
  )
}
for (let round = 0; round < 2; round++) {
  await run('connection: JSON, 100 points', hundred, false, 5_000)
  await run('connection: binary, 100 points', hundred, true, 20_000)
  await run('connection: JSON, 1 point', [point(0)], false, 200_000)
  await run('connection: binary, 1 point', [point(0)], true, 200_000)
}
if (sink < 0) process.stdout.write('')
