import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { Batcher, BATCHER_LIMITS } from '../../src/features/locations/ingest/batcher.ts'
import { ingestChannel } from '../../src/features/locations/ingest/channel.ts'
import { PointStore } from '../../src/features/locations/ingest/store.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { FixedTrackers, ingestKey, quietLogger } from './ingest.ts'

/** Sends numbered points through the door as fast as the window allows, and tells its parent what is acknowledged. */
const [path, first] = process.argv.slice(2)
const ORG = idFrom('organization', 'a')
const PARTITIONS = 4
const log = await openLmdbEventLog({ path, clock: systemClock })
const trackers = new FixedTrackers(PARTITIONS)
for (let i = 0; i < 20; i++) trackers.add(ORG, `bus-${i}`)
const batcher = new Batcher({
  log,
  clock: systemClock,
  logger: quietLogger,
  partitions: PARTITIONS,
  limits: BATCHER_LIMITS,
  onAppended: () => {},
  startAppendTimer: () => () => {},
})
const ingest = new PointStore({
  batcher,
  resolver: trackers,
  clock: systemClock,
  logger: quietLogger,
  retentionMs: 1e10,
  count: () => {},
})
const start = Date.now() - 1_000_000
const lastOf = new Map<number, number>()
let seq = 0
let acked = 0
let sent = Number(first)
const connection = ingestChannel(ingest).open(
  {
    send: (text) => {
      const message = JSON.parse(text)
      if (message.type !== 'ack') return 0
      acked = message.seq
      process.send?.(lastOf.get(acked))
      setImmediate(sendMore)
      return 0
    },
    bufferedBytes: () => 0,
    close: (code, reason) => {
      throw new Error(`${code} ${reason}`)
    },
    address: '',
  },
  ingestKey(ORG),
)

function sendMore(): void {
  while (seq - acked < 100) {
    const points = Array.from({ length: 7 }, () => ({
      externalId: `bus-${++sent % 20}`,
      recordedAt: start + sent,
      lat: 1,
      lng: sent / 1e5,
    }))
    lastOf.set(++seq, sent)
    connection.message(new Uint8Array(Buffer.from(JSON.stringify({ type: 'points', seq, points }))).buffer, false)
  }
}
sendMore()
