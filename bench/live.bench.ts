import type { EventLog } from '../src/engines/event-log.ts'
import { emptyBatch } from '../src/features/locations/ingest/build-batch.ts'
import type { UserCaller } from '../src/kernel/caller.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import type { ChannelConnection, ChannelSocket } from '../src/kit/http/channel.ts'
import { LiveHub } from '../src/live/hub.ts'
import { liveChannel } from '../src/live/client.ts'
import { cpuMs } from './support/measure.ts'
import { seeded } from '../test/support/random.ts'

/**
 * Cost of a subscription to a fleet of 20,000 until its snapshot is sent, in µs of CPU time, while the fleet stands and
 * while it moves with other maps open; beside it the cost of making and handing over the texts of the snapshot.
 */
const FLEET = 20_000
const ROUNDS = 200

const random = seeded(7)
const caller: UserCaller = {
  kind: 'user',
  organizationId: 'org',
  userId: 'u',
  identityId: 'i',
  email: 'a@b.example',
  jti: 'j',
  expiresAt: Number.MAX_SAFE_INTEGER,
  roleId: 'r',
  permissions: new Set(['view/location-history']),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
}
const ids = Array.from({ length: FLEET }, (_, i) => `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`)
const places = Array.from({ length: FLEET }, () => ({ lat: 51.5 + random() * 1.4, lng: 20 + random() * 2 }))

async function* none(): AsyncGenerator<never> {}
async function* facts() {
  for (let i = 0; i < FLEET; i++) yield { trackerId: ids[i], facts: { name: `Bus ${i}`, hubIds: [] } }
}
const hub = new LiveHub({
  log: { head: async () => -1, read: async () => [] } as unknown as EventLog,
  partitions: 1,
  logMark: 7,
  ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
  clock: systemClock,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
  onConflated: () => {},
  sources: {
    latestPoints: async () => ({ points: none(), keptUpTo: {} }),
    trackers: async () => facts(),
    factsOf: async () => [],
    decode: () => undefined as never,
    eventOf: (decision) => decision,
  },
  feeds: [],
})

let revision = -1
let recordedAt = Date.now() - 600_000
/** Moves some of the fleet by some metres. */
const move = (from: number, count: number): void => {
  revision++
  recordedAt += 10
  const own = Array.from({ length: count }, (_, k) => (from + k) % FLEET)
  const trackers = own.map((i) => ({ trackerId: ids[i], organizationId: 'org' }))
  const batch = emptyBatch(count, recordedAt, trackers)
  for (const [k, i] of own.entries()) {
    const place = places[i]
    place.lat += (random() - 0.5) * 2e-4
    place.lng += (random() - 0.5) * 2e-4
    batch.tracker[k] = k
    batch.lat[k] = Math.round(place.lat * 1e7)
    batch.lng[k] = Math.round(place.lng * 1e7)
  }
  batch.recordedAt.fill(recordedAt)
  hub.positions.handle({ kind: 'points', partition: 0, revision, position: revision, batch }, 0)
}

interface Client {
  connection: ChannelConnection
  snapshots: number
  bytes: number
  /** Called after each snapshot. */
  wake(): void
}

const connect = (): Client => {
  const client = { snapshots: 0, bytes: 0, wake: () => {} } as Client
  const socket: ChannelSocket = {
    address: '',
    bufferedBytes: () => 0,
    close: (code, reason) => {
      throw new Error(`${code} ${reason}`)
    },
    send: (text) => {
      client.bytes += text.length
      if (text.startsWith('{"type":"snapshot"') && !text.endsWith('"more":true}')) {
        client.snapshots++
        client.wake()
      }
      return 0
    },
  }
  client.connection = liveChannel(hub, () => true).open(socket, caller)
  return client
}

const say = ({ connection }: Client, message: object): void =>
  connection.message(new Uint8Array(Buffer.from(JSON.stringify(message))).buffer, false)

const nextSnapshot = (client: Client): Promise<void> =>
  new Promise((done) => {
    client.wake = done
  })

/** A map of some hundredths of a degree at a random place. */
const boxOf = (degrees: number): number[] => {
  const west = 20 + random() * (2 - degrees)
  const south = 51.5 + random() * (1.4 - Math.min(1.4, degrees))
  return [west, south, west + degrees, Math.min(52.9, south + degrees)]
}

const measure = async (
  name: string,
  degrees: number | undefined,
  isMoving: boolean,
  idsOf = (round: number) => `s${round % 16}`,
): Promise<void> => {
  const client = connect()
  const subscribe = async (round: number): Promise<void> => {
    const snapshot = nextSnapshot(client)
    say(client, {
      type: 'subscribe',
      id: idsOf(round),
      channels: ['positions'],
      ...(degrees !== undefined && { bbox: boxOf(degrees) }),
    })
    await snapshot
    if (isMoving) move(round * 200, 200)
  }
  for (let round = 0; round < 20; round++) await subscribe(round)
  client.bytes = 0
  const begun = process.cpuUsage()
  const startedAt = performance.now()
  for (let round = 0; round < ROUNDS; round++) await subscribe(round)
  const cpu = (cpuMs(begun) * 1000) / ROUNDS
  const wall = ((performance.now() - startedAt) * 1000) / ROUNDS
  process.stdout.write(
    `${name.padEnd(58)} ${cpu.toFixed(0).padStart(7)} µs CPU ${wall.toFixed(0).padStart(7)} µs until its snapshot, ${Math.round(client.bytes / ROUNDS / 1024)} KiB\n`,
  )
  client.connection.closed()
}

/** The clock's timers keep no process alive. */
const alive = setInterval(() => {}, 1_000)
const others = Array.from({ length: 500 }, connect)
for (let from = 0; from < FLEET; from += 1_000) move(from, 1_000)
const loaded = nextSnapshot(others[0])
say(others[0], { type: 'subscribe', id: 'first', channels: ['positions'] })
await loaded
others[0].connection.closed()

for (const [name, degrees] of [
  ['0.02° (some 3 trackers)', 0.02],
  ['0.1° (some 70)', 0.1],
  ['0.37° (some 1,000)', 0.37],
  ['everything (20,000)', undefined],
] as const) {
  await measure(`${name}, the fleet stands`, degrees, false)
  await measure(`${name}, 200 points between`, degrees, true)
}
for (const client of others.slice(1)) {
  const snapshot = nextSnapshot(client)
  say(client, { type: 'subscribe', id: 'map', bbox: boxOf(0.2), channels: ['positions'] })
  await snapshot
}
await measure('0.1°, 200 points between, 499 other maps', 0.1, true)
clearInterval(alive)
process.exit(0)
