import type { Test } from 'tap'
import type { Appended, EventLog } from '../../src/engines/event-log.ts'
import { openGappedLog } from './gapped-log.ts'
import { BATCHER_LIMITS, Batcher, type BatcherLimits } from '../../src/features/locations/ingest/batcher.ts'
import {
  locationStream,
  partitionOf,
  type LocationEntry,
  type PointBatch,
} from '../../src/features/locations/events.ts'
import { ingestChannel } from '../../src/features/locations/ingest/channel.ts'
import { PointStore } from '../../src/features/locations/ingest/store.ts'
import { locationEntry } from '../../src/features/locations/location-entry.ts'
import type { KnownTracker, TrackerName, TrackerRefusal, TrackerResolver } from '../../src/features/trackers/views.ts'
import type { Caller } from '../../src/kernel/caller.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { folderOf } from './folder-of.ts'

export const quietLogger = { debug() {}, info() {}, warn() {}, error() {} }

/** The real log, which refuses appends to location streams while told to, and notes what was appended. */
class RefusingLog {
  isRefusing = false
  /** Refuses appends to this stream alone. */
  refusedStream: string | undefined
  appends: { stream: string; ids: string[] }[] = []
  /** Holds every append to a location stream back until `release`. */
  private gate: Promise<void> | undefined
  private open = () => {}
  readonly log: EventLog

  constructor(inner: EventLog) {
    this.log = new Proxy(inner, {
      get: (target, name) => {
        if (name === 'append') return this.append.bind(this, target)
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  hold(): void {
    this.gate = new Promise((open) => {
      this.open = open
    })
  }

  release(): void {
    this.gate = undefined
    this.open()
  }

  private async append(inner: EventLog, ...args: Parameters<EventLog['append']>): Promise<Appended> {
    if (args[0].startsWith('locations-')) {
      this.appends.push({ stream: args[0], ids: args[1].map(({ id }) => id) })
      await this.gate
      if (this.isRefusing || this.refusedStream === args[0]) throw new Failure('engine_down')
    }
    return inner.append(...args)
  }
}

/** Knows trackers `<name>` of organizations by their external id; makes none. */
export class FixedTrackers implements TrackerResolver {
  readonly trackers = new Map<string, KnownTracker>()
  readonly partitions: number
  /** External ids that are found by `resolve` only. */
  readonly unknownAtFirst = new Set<string>()
  /** Lookups wait for this. */
  gate: Promise<void> | undefined

  constructor(partitions: number) {
    this.partitions = partitions
  }

  add(organizationId: string, externalId: string): KnownTracker {
    const trackerId = idFrom(organizationId, externalId)
    const tracker = {
      trackerId,
      organizationId,
      externalId,
      partition: partitionOf(trackerId, this.partitions),
      mark: 0,
      index: 0,
    }
    this.trackers.set(`${organizationId} ${externalId}`, tracker)
    this.trackers.set(`${organizationId} ${trackerId}`, tracker)
    return tracker
  }

  known(
    { organizationId }: Caller,
    trackerId?: string,
    externalId?: string,
  ): KnownTracker | TrackerRefusal | undefined {
    const name = trackerId ?? externalId
    if (name === undefined) return 'invalid'
    if (this.unknownAtFirst.has(name)) return undefined
    return this.trackers.get(`${organizationId} ${name}`) ?? 'unknown_tracker'
  }

  async listed(): Promise<void> {}

  async resolve({ organizationId }: Caller, names: readonly TrackerName[]): Promise<(KnownTracker | TrackerRefusal)[]> {
    await this.gate
    await new Promise((done) => setImmediate(done))
    return names.map(
      ({ trackerId, externalId }) =>
        this.trackers.get(`${organizationId} ${trackerId ?? externalId}`) ?? 'unknown_tracker',
    )
  }
}

export interface TestIngestOptions {
  partitions?: number
  limits?: Partial<BatcherLimits>
  clock?: Clock
  retentionMs?: number
}

/** The door on a real log in a folder of the test. */
export const openIngest = async (t: Test, options: TestIngestOptions = {}) => {
  const { partitions = 4, clock = systemClock, retentionMs = 365 * 86_400_000 } = options
  const inner = await openGappedLog({ path: folderOf(t), clock })
  t.teardown(() => inner.close())
  const refusing = new RefusingLog(inner)
  const entries: LocationEntry[] = []
  const counts = { accepted: 0, duplicate: 0, rejected: 0 }
  const limits = { ...BATCHER_LIMITS, ...options.limits }
  const batcher = new Batcher({
    log: refusing.log,
    clock,
    logger: quietLogger,
    partitions,
    limits,
    onAppended: (entry) => entries.push(entry),
    startAppendTimer: () => () => {},
  })
  const trackers = new FixedTrackers(partitions)
  const ingest = new PointStore({
    batcher,
    resolver: trackers,
    clock,
    logger: quietLogger,
    retentionMs,
    count: (result, points) => {
      counts[result] += points
    },
  })
  const channel = ingestChannel(ingest)
  /** What the log holds, by partition. */
  const logged = async (): Promise<PointBatch[][]> => {
    const all: PointBatch[][] = []
    for (let partition = 0; partition < partitions; partition++) {
      const events = await inner.read(locationStream(partition), 0, 10_000)
      all.push(
        events
          .map((event) => locationEntry(event, partition))
          .flatMap((entry) => (entry.kind === 'points' ? [entry.batch] : [])),
      )
    }
    return all
  }
  return {
    log: inner,
    refusing,
    batcher,
    ingest,
    trackers,
    channel,
    entries,
    counts,
    clock,
    logged,
    connect: (caller: Caller) => connect(channel, caller),
  }
}

type Message = {
  type: string
  seq?: number
  rejected?: { index: number; code: string; message: string }[]
  [member: string]: unknown
}

/** A client's end of a connection: what the server has sent, and waiting for it. */
export const connect = (channel: ReturnType<typeof ingestChannel>, caller: Caller) => {
  const messages: Message[] = []
  const waiting: (() => void)[] = []
  const client = {
    messages,
    buffered: 0,
    over: undefined as { code: number; reason: string } | undefined,
    get acked() {
      return messages.reduce((most, { type, seq }) => (type === 'ack' ? Math.max(most, seq as number) : most), 0)
    },
    get rejected() {
      return messages.flatMap(({ type, seq, rejected }) =>
        type === 'reject' ? (rejected ?? []).map((one) => ({ seq, ...one })) : [],
      )
    },
    send: (message: unknown) =>
      connection.message(
        new Uint8Array(Buffer.from(typeof message === 'string' ? message : JSON.stringify(message))).buffer,
        false,
      ),
    sendBinary: (bytes: Uint8Array<ArrayBuffer>) => {
      const copy = bytes.slice()
      connection.message(copy.buffer, true)
      copy.fill(255)
    },
    drain: () => connection.drain(),
    close: () => connection.closed(),
    until: async (isTrue: () => boolean, limitMs = 240_000) => {
      const end = performance.now() + limitMs
      while (!isTrue()) {
        if (performance.now() > end)
          throw new Error(
            `waited ${limitMs} ms; last: ${JSON.stringify(messages.slice(-3))} ${JSON.stringify(client.over)}`,
          )
        await new Promise<void>((done) => {
          waiting.push(done)
          setTimeout(done, 20)
        })
      }
    },
  }
  const wake = () => {
    for (const done of waiting.splice(0)) done()
  }
  const connection = channel.open(
    {
      send: (text) => {
        messages.push(JSON.parse(text))
        wake()
        return client.buffered
      },
      bufferedBytes: () => client.buffered,
      close: (code, reason) => {
        client.over = { code, reason }
        connection.closed()
        wake()
      },
      address: '127.0.0.1',
    },
    caller,
  )
  return client
}

export const ingestKey = (organizationId: string): Caller => ({
  kind: 'ingestKey',
  organizationId,
  keyId: 'key',
  autoCreate: false,
})

/** (tracker, time) of every point, in the order of the log. */
export const pointsOf = (
  batches: readonly PointBatch[],
): { trackerId: string; recordedAt: number; lat: number; lng: number; flags: number }[] =>
  batches.flatMap((batch) =>
    Array.from({ length: batch.count }, (_, i) => ({
      trackerId: batch.trackers[batch.tracker[i]].trackerId,
      recordedAt: batch.recordedAt[i],
      lat: batch.lat[i] / 1e7,
      lng: batch.lng[i] / 1e7,
      flags: batch.flags[i],
    })),
  )
