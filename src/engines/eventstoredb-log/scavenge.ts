import { randomUUID } from 'node:crypto'
import { AccessDeniedError, BACKWARDS, END } from '@eventstore/db-client'
import operationsGrpc from '@eventstore/db-client/generated/operations_grpc_pb.js'
import operationsPb from '@eventstore/db-client/generated/operations_pb.js'
import { decodeJson } from '../../kernel/event.ts'
import type { Reclaimed } from '../event-log.ts'
import { insideOf } from './client-inside.ts'
import type { Connection } from './connection.ts'
import { readToEnd } from './read.ts'

type ScavengeResp = InstanceType<typeof operationsPb.ScavengeResp>

/** Hidden bytes, by estimate, above which a scavenge is worth reading the whole log: a chunk of the server. */
const HIDDEN_BYTES_MIN = 256 * 1024 * 1024
const DAY_MS = 24 * 3_600_000
/** However little is hidden: erased events leave the disk. */
const INTERVAL_MAX_MS = 7 * DAY_MS
/** Pauses after consecutive failed scavenges, from the start of the last one; the last pause repeats. */
const AGAIN_MS: readonly number[] = [1, 4, 12, 24].map((hours) => hours * 3_600_000)
/** The server's journal of scavenges, of all nodes and however they were started. */
const JOURNAL = '$scavenges'
const JOURNAL_EVENTS = 40

/**
 * Makes the server remove hidden events from its files: a day after the last time where much was hidden since, a week
 * after it in any case. The server's journal tells when that was, so that several processes and other schedules count,
 * and how it ended: one cut off by a restart of the server has left hidden events in place, and is started again.
 */
export class Scavenges {
  private readonly connection: Connection
  private readonly now: () => number
  private hiddenBytes = 0

  constructor(connection: Connection, now: () => number) {
    this.connection = connection
    this.now = now
  }

  /** Counts hidden bytes, by estimate. */
  hid(bytes: number): void {
    this.hiddenBytes += bytes
  }

  async reclaim(): Promise<Reclaimed> {
    try {
      const { begunAtMs, failures } = await lastScavenges(this.connection)
      const sinceMs = this.now() - begunAtMs
      if (failures > 0 && sinceMs < AGAIN_MS[Math.min(failures, AGAIN_MS.length) - 1]) return 'notDue'
      if (failures === 0 && (sinceMs < DAY_MS || (sinceMs < INTERVAL_MAX_MS && this.hiddenBytes < HIDDEN_BYTES_MIN)))
        return 'notDue'
      const result = await startScavenge(this.connection)
      if (result === operationsPb.ScavengeResp.ScavengeResult.STARTED) this.hiddenBytes = 0
      return result === operationsPb.ScavengeResp.ScavengeResult.STARTED ? 'begun' : 'running'
    } catch (error) {
      if (isForbidden(error)) return 'forbidden'
      throw error
    }
  }

  /** A user that may not read the journal learns nothing. */
  async failures(): Promise<number> {
    try {
      return (await lastScavenges(this.connection)).failures
    } catch (error) {
      if (isForbidden(error)) return 0
      throw error
    }
  }
}

interface LastScavenges {
  /** Start of the newest one; never means long ago. */
  begunAtMs: number
  /** Number of the newest ones in a row that failed, without an unfinished one. */
  failures: number
}

/** The newest scavenges according to the journal. */
export const lastScavenges = async ({ client, credentials, deadlineMs }: Connection): Promise<LastScavenges> => {
  const journal = client.readStream(JOURNAL, {
    direction: BACKWARDS,
    fromRevision: END,
    maxCount: JOURNAL_EVENTS,
    resolveLinkTos: true,
    credentials,
    requiresLeader: true,
  })
  const results = new Map<unknown, unknown>()
  let begunAtMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let isCounted = false
  for (const { type, data, loggedAt } of await readToEnd(journal, deadlineMs)) {
    if (type !== '$scavengeCompleted' && type !== '$scavengeStarted') continue
    const { scavengeId, result } = decodeJson<JournalEntry>(data)
    if (type === '$scavengeCompleted') results.set(scavengeId, result)
    if (type !== '$scavengeStarted') continue
    begunAtMs = Math.max(begunAtMs, loggedAt)
    const ended = results.get(scavengeId)
    isCounted ||= ended === undefined || ended === 'Success'
    if (!isCounted) failures++
  }
  return { begunAtMs, failures }
}

interface JournalEntry {
  scavengeId?: string
  result?: string
}

type Call = (
  request: object,
  metadata: object,
  options: object,
  answer: (error: unknown, response: ScavengeResp) => void,
) => void

interface Operations {
  startScavenge: Call
  stopScavenge: Call
}

/** Whether the user may start scavenges, which takes the right to stop one: tried with one that nobody began. */
export const mayScavenge = async (connection: Connection): Promise<boolean> => {
  const options = new operationsPb.StopScavengeReq.Options().setScavengeId(randomUUID())
  try {
    await operate(connection, 'stopScavenge', new operationsPb.StopScavengeReq().setOptions(options))
    return true
  } catch (error) {
    if (isForbidden(error)) return false
    if ((error as { code?: number }).code === NOT_FOUND_CODE) return true
    throw error
  }
}

const startScavenge = (connection: Connection): Promise<number> => {
  const options = new operationsPb.StartScavengeReq.Options().setThreadCount(1).setStartFromChunk(0)
  return operate(connection, 'startScavenge', new operationsPb.StartScavengeReq().setOptions(options))
}

/** A call that the client does not offer. Answers the result that the server reports. */
const operate = (
  { client, credentials, deadlineMs }: Connection,
  name: keyof Operations,
  request: object,
): Promise<number> => {
  const inside = insideOf(client)
  const call = (operations: Operations): Promise<number> =>
    new Promise((resolve, reject) =>
      operations[name](request, ...inside.callArguments({ credentials, deadline: deadlineMs }), (error, response) =>
        error === null ? resolve(response.getScavengeResult()) : reject(error),
      ),
    )
  return inside.execute(operationsGrpc.OperationsClient, name, call)
}

const isForbidden = (error: unknown): boolean =>
  error instanceof AccessDeniedError || FORBIDDEN_CODES.includes((error as { code?: number }).code ?? 0)

/** gRPC: not found. */
const NOT_FOUND_CODE = 5
/** gRPC: permission denied, unauthenticated. */
const FORBIDDEN_CODES = [7, 16]
