import { test, type Test } from 'tap'
import { openGappedLog } from '../support/gapped-log.ts'
import type { BacktestRequested } from '../../src/features/backtests/events.ts'
import { type JobCommand, jobDecider } from '../../src/kit/jobs/life.ts'
import { BACKTEST, BACKTEST_VIEW } from '../../src/features/backtests/views.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { handleCommand } from '../../src/kit/commands/handle-command.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import { LiveHub } from '../../src/live/hub.ts'
import { jobFeed } from '../../src/live/job-feed.ts'
import { liveChannel } from '../../src/live/client.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { folderOf } from '../support/folder-of.ts'
import { until, type Json } from '../support/service.ts'
import { uuidOf } from '../support/trace-batches.ts'

const START = Date.parse('2026-01-01T00:00:00Z')
const ORGANIZATION = uuidOf('organization')
const callerOf = (changes: Partial<UserCaller> = {}): UserCaller => ({
  kind: 'user',
  organizationId: ORGANIZATION,
  userId: 'u',
  identityId: 'i',
  email: 'a@b.example',
  jti: 'j',
  expiresAt: Number.MAX_SAFE_INTEGER,
  roleId: 'r',
  permissions: new Set(['view/geofence']),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
  ...changes,
})

const open = async (t: Test) => {
  const log = await openGappedLog({ path: folderOf(t), clock: systemClock })
  t.teardown(() => log.close())
  const ids = idSource(START)
  const tell = (name: string, command: JobCommand<BacktestRequested>): Promise<unknown> =>
    handleCommand(log, BACKTEST.stream(uuidOf(name)), jobDecider(BACKTEST, uuidOf(name)), command, {
      ids,
      metadata: { organizationId: ORGANIZATION },
    })
  const request = (name: string, organizationId = ORGANIZATION): Promise<unknown> => {
    const requested = {
      organizationId,
      geofenceId: 'f',
      geofenceGroupId: 'g',
      geofenceVersion: 1,
      userId: 'u',
      hubIds: 'all' as const,
      from: START,
      to: START,
      rules: {},
      total: 100,
      at: START,
    }
    return tell(name, { kind: 'request', requested })
  }
  const openHub = async (): Promise<LiveHub> => {
    const hub = new LiveHub({
      log,
      partitions: 1,
      logMark: 7,
      ages: { staleAfterMs: 1, offlineAfterMs: 1 },
      clock: systemClock,
      onConflated: () => {},
      logger: { debug() {}, info() {}, warn() {}, error: (message) => t.fail(message) },
      sources: {
        latestPoints: async () => ({ points: (async function* () {})(), keptUpTo: {} }),
        factsOf: async () => [],
        trackers: async () => (async function* () {})(),
        decode: () => {
          throw new Error('nothing to decode')
        },
        eventOf: () => ({}),
      },
      feeds: [jobFeed([BACKTEST_VIEW])],
    })
    const feed = await jobFeed([BACKTEST_VIEW]).follow(hub)
    t.teardown(() => feed.close())
    return hub
  }
  const connect = async (hub: LiveHub, caller = callerOf(), message: object = {}, inRollout = true) => {
    const messages: Json[] = []
    const socket = {
      address: '',
      isLocal: true,
      send: (text: string) => messages.push(JSON.parse(text)) && 0,
      bufferedBytes: () => 0,
      close: () => {},
    }
    const connection = liveChannel(hub, () => inRollout).open(socket, caller)
    const subscribe = { type: 'subscribe', id: 's', channels: ['job'], ...message }
    connection.message(new Uint8Array(Buffer.from(JSON.stringify(subscribe))).buffer, false)
    await until('the snapshot', () => messages.some(({ type }) => type === 'snapshot'))
    const events = (): Json[] => messages.filter(({ type }) => type === 'event')
    return { messages, events, statuses: (): string[] => events().map(({ event }) => event.status) }
  }
  return { log, tell, request, openHub, connect }
}

test('whoever may read a job hears how it goes, to its end or its cancellation; nobody else does', async (t) => {
  const { tell, request, openHub, connect } = await open(t)
  const hub = await openHub()
  const heard = await Promise.all([
    connect(hub),
    connect(hub, callerOf({ hubIds: [] })),
    connect(hub, callerOf(), { trackerIds: ['x'] }),
  ])
  const deaf = await Promise.all([
    connect(hub, callerOf({ userId: 'another', hubIds: ['h'] })),
    connect(hub, callerOf({ permissions: new Set() })),
    connect(hub, callerOf({ organizationId: uuidOf('other') })),
    connect(hub, callerOf(), {}, false),
    connect(hub, callerOf(), { channels: ['geofence'] }),
  ])
  await request('a')
  await tell('a', { kind: 'start', attempt: 1, at: START + 1 })
  await tell('a', { kind: 'progress', attempt: 1, processed: 50, at: START + 2 })
  await tell('a', { kind: 'progress', attempt: 0, processed: 60, at: START + 2 }) // an attempt before this one
  await tell('a', {
    kind: 'finish',
    attempt: 1,
    processed: 101,
    result: { first: 0, last: 0, transitions: 3 },
    at: START + 3,
  })
  await tell('a', { kind: 'progress', attempt: 1, processed: 50, at: START + 4 }) // says nothing any more
  await tell('a', { kind: 'delete', organizationId: ORGANIZATION, at: START + 5 }) // it had ended
  await request('b')
  await tell('b', { kind: 'fail', attempt: 0, code: 'too_large', message: 'Over it.', at: START })
  await request('c')
  await tell('c', { kind: 'delete', organizationId: ORGANIZATION, at: START + 6 })
  const all = ['queued', 'processing', 'processing', 'completed', 'queued', 'failed', 'queued', 'cancelled']
  await until('all of it', () => heard.every(({ events }) => events().length >= all.length))
  for (const { statuses } of heard) t.same(statuses(), all)
  t.same(
    heard[0].events().map(({ event }) => event.processed),
    [0, 0, 50, 101, 0, 0, 0, 0],
  )
  t.match(heard[0].events()[3].event, { total: 101, transitions: 3 })
  t.match(heard[0].events()[5].event, { error: { code: 'too_large', message: 'Over it.' } })
  for (const { events } of deaf) t.same(events(), [])

  const cursorAt = (i: number): string => heard[0].events()[i].cursor
  for (const [what, one] of [
    ['the ring', hub],
    ['the log', await openHub()],
  ] as const) {
    const { events, messages } = await connect(one, callerOf(), { since: cursorAt(3) })
    t.same(events(), heard[0].events().slice(4), `the same after since, from ${what}`)
    t.notOk(messages.some(({ type }) => type === 'gap'))
  }
})
