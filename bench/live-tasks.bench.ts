import type { EventLog, FollowBatch } from '../src/engines/event-log.ts'
import { TASK } from '../src/features/tasks/views.ts'
import type { UserCaller } from '../src/kernel/caller.ts'
import { encodeJson, type RecordedEvent } from '../src/kernel/event.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import type { ChannelSocket } from '../src/kit/http/channel.ts'
import { liveChannel } from '../src/live/client.ts'
import { LiveHub } from '../src/live/hub.ts'
import { taskFeed } from '../src/features/tasks/live-feed.ts'
import { cpuMs } from './support/measure.ts'
import { seeded } from '../test/support/random.ts'

/**
 * Cost of a change of a task until all who see it were informed, in µs of CPU time, with 2,000 people of one
 * organization: field users, who see their own, and some dispatchers who see all; beside it nobody who asked for tasks.
 */
const PEOPLE = 2_000
const EVENTS = 10_000
const BATCH = 100

const random = seeded(7)
const idOf = (kind: number, n: number): string => `00000000-0000-7000-800${kind}-${String(n).padStart(12, '0')}`
const callerOf = (n: number, dispatches: boolean): UserCaller => ({
  kind: 'user',
  organizationId: 'org',
  userId: idOf(1, n),
  identityId: 'i',
  email: 'a@b.example',
  jti: 'j',
  expiresAt: Number.MAX_SAFE_INTEGER,
  roleId: dispatches ? 'planner' : 'fieldUser',
  permissions: new Set(dispatches ? ['view/task', 'dispatch/task'] : ['view/task']),
  permissionDetails: [],
  hubIds: [idOf(2, n % 10)],
  teamIds: [],
})

/** Changes of tasks, each of one hub and one field user of it. */
const events: RecordedEvent[] = Array.from({ length: EVENTS }, (_, i) => {
  const n = Math.floor(random() * PEOPLE)
  const values = {
    title: 'Deliver 3 parcels',
    state: 'assigned',
    hubId: idOf(2, n % 10),
    assigneeIds: [idOf(1, n)],
    description: 'x'.repeat(300),
    components: { parcels: 3, receiver: 'Ada', phone: '+48 22 555 0000' },
  }
  const at = '2026-01-01T08:00:00.000Z'
  const data = encodeJson({ organizationId: 'org', values, createdAt: at, at })
  const metadata = { organizationId: 'org' }
  return {
    id: idOf(3, i),
    type: TASK.created,
    data,
    isJson: true,
    metadata,
    stream: `task-${idOf(4, i)}`,
    revision: 0,
    position: i + 1,
    loggedAt: 0,
  }
})

const measure = async (field: number, dispatchers: number): Promise<void> => {
  let told = 0
  let done: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (done = resolve))
  async function* follow(_source: unknown, _from: unknown, signal: AbortSignal): AsyncGenerator<FollowBatch> {
    for (let at = 0; at < EVENTS; at += BATCH)
      yield { events: events.slice(at, at + BATCH), checkpoint: at + BATCH, caughtUp: at + BATCH >= EVENTS }
    done()
    await new Promise<void>((ended) => signal.addEventListener('abort', () => ended()))
  }
  const nothing = { events: [], checkpoint: 0 }
  const hub = new LiveHub({
    log: { head: async () => -1, headPosition: async () => 0, read: async () => [], follow } as unknown as EventLog,
    partitions: 1,
    logMark: 7,
    ages: { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 },
    clock: systemClock,
    logger: { debug() {}, info() {}, warn() {}, error: (message, fields) => console.error(message, fields) },
    onConflated: () => {},
    sources: {
      latestPoints: async () => ({ points: (async function* () {})(), keptUpTo: {} }),
      trackers: async () => (async function* () {})(),
      factsOf: async () => [],
      decode: () => nothing as never,
      eventOf: (decision) => decision,
    },
    feeds: [taskFeed()],
  })
  const join = (caller: UserCaller): void => {
    const socket: ChannelSocket = { address: '', bufferedBytes: () => 0, close: () => {}, send: () => ++told && 0 }
    const connection = liveChannel(hub, () => true).open(socket, caller)
    const text = JSON.stringify({ type: 'subscribe', id: 's', channels: ['task', 'notification'] })
    connection.message(new Uint8Array(Buffer.from(text)).buffer, false)
  }
  for (let n = 0; n < field; n++) join(callerOf(n, false))
  for (let n = 0; n < dispatchers; n++) join(callerOf(n, true))
  await new Promise((settled) => setTimeout(settled, 50))
  told = 0
  const begun = process.cpuUsage()
  const feed = await taskFeed().follow(hub)
  await finished
  const us = (cpuMs(begun) * 1000) / EVENTS
  await feed.close()
  const who = `${field} field users, ${dispatchers} who dispatch`.padEnd(40)
  console.log(`${who} ${us.toFixed(1)} µs of CPU a change, ${(told / EVENTS).toFixed(1)} told of each`)
}

await measure(0, 1)
console.log('after one round to warm up:')
await measure(0, 0)
await measure(PEOPLE, 0)
await measure(PEOPLE, 20)
await measure(PEOPLE, 200)
