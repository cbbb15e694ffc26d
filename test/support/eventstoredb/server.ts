import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import clientPb from '@eventstore/db-client/generated/gossip_pb.js'
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js'
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js'
import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js'
import operationsGrpc from '@eventstore/db-client/generated/operations_grpc_pb.js'
import operationsPb from '@eventstore/db-client/generated/operations_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import {
  APPEND_BYTES_MAX,
  type AppendCounts,
  type BatchAppendCall,
  type CallFailure,
  serveBatchAppend,
} from './batch-append.ts'
import { accessDenied, appendTooLarge } from './refusals.ts'
import { appendAnswer, expectedOf, nameOf, positionOf, proposedOf, requestsOf, streamDeleted } from './messages.ts'
import { type ReadCall, serveRead, type SubscriptionCounts } from './reading.ts'
import { sizeOnDisk, StreamStore } from './store.ts'
import { widenConnections, widenStreams } from './windows.ts'

type AppendReq = InstanceType<typeof streamsPb.AppendReq>
type AppendResp = InstanceType<typeof streamsPb.AppendResp>
type DeleteReq = InstanceType<typeof streamsPb.DeleteReq>
type DeleteResp = InstanceType<typeof streamsPb.DeleteResp>
type TombstoneReq = InstanceType<typeof streamsPb.TombstoneReq>
type TombstoneResp = InstanceType<typeof streamsPb.TombstoneResp>

/** What the server does wrong on demand, until it is told otherwise. */
export type ServerFault =
  /** Answers an append with a timeout, and carries it out some moments later. */
  | 'lateCommit'
  /** Carries an append out and answers nothing. */
  | 'lostAnswer'
  /** Answers nothing. */
  | 'silence'
  /** Says that another node leads: the one of `leaderPort`. */
  | 'notLeader'
  | 'notReady'
  /** The user may not do this. */
  | 'forbidden'
  /** Refuses deletions alone. */
  | 'noDelete'

export interface EventstoredbServer {
  url: string
  fault: ServerFault | undefined
  /** How often a fault struck. */
  readonly struck: number
  /** Milliseconds before each append and read. */
  delayMs: number
  /** Of the node that leads; its own at first. */
  leaderPort: number
  readonly port: number
  readonly subscriptions: SubscriptionCounts
  readonly appends: AppendCounts
  /** Whether whoever asks has the group `$ops`. */
  mayScavenge: boolean
  /** How scavenges end: `later` only when told to, `Failed` as one that a restart of the server cuts off. */
  scavengeEnd: 'Success' | 'Failed' | 'later'
  /** Ends those that have not ended. */
  endScavenges(result: 'Success' | 'Failed'): void
  /** That were carried out. */
  readonly scavenges: number
  close(): Promise<void>
}

export interface ServerOptions {
  /** The file of records; left out, everything is in memory. */
  path?: string
  port?: number
  version?: string
  /** In PEM; left out, connections are insecure. */
  tls?: { key: Buffer; certificate: Buffer }
  /** `name:password`; any other is refused. */
  user?: string
}

/** The generated code copies requests before it reads them. */
const STREAMS = {
  ...streamsGrpc.StreamsService,
  batchAppend: {
    ...streamsGrpc.StreamsService.batchAppend,
    requestDeserialize: (bytes: Uint8Array) => streamsPb.BatchAppendReq.deserializeBinary(bytes),
  },
}

const LATE_MS = 150
/** Strike one kind of call only. */
const OF_ONE_KIND: ReadonlySet<ServerFault> = new Set(['lateCommit', 'lostAnswer', 'noDelete'])

/**
 * A server that speaks EventStoreDB's protocol as far as Waymark uses it: Streams, ServerFeatures and Gossip over gRPC.
 * It is faithful in what hurts clients; test/contracts/eventstoredb-server.test.ts holds it against a real one.
 */
export const openEventstoredbServer = async (options: ServerOptions = {}): Promise<EventstoredbServer> => {
  const server = new Double(options)
  await server.listen(options.port ?? 0)
  return server
}

class Double implements EventstoredbServer {
  fault: ServerFault | undefined
  struck = 0
  delayMs = 0
  readonly subscriptions: SubscriptionCounts = { open: 0, begun: 0, passed: 0 }
  readonly appends: AppendCounts = { calls: 0, begun: 0, owed: 0 }
  mayScavenge = true
  scavengeEnd: EventstoredbServer['scavengeEnd'] = 'Success'
  private readonly openScavenges: string[] = []
  scavenges = 0
  port = 0
  leaderPort = 0
  readonly store: StreamStore
  private readonly version: string
  private readonly options: ServerOptions
  private readonly server = new Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 })

  constructor(options: ServerOptions) {
    const { path, version = '23.10.6' } = options
    this.options = options
    this.store = new StreamStore(path)
    this.version = version
    this.server.addService(STREAMS as never, {
      read: (call: ReadCall) => void this.read(call),
      append: (call: ServerReadableStream<AppendReq, AppendResp>, reply: sendUnaryData<AppendResp>) =>
        void this.append(call, reply),
      batchAppend: (call: BatchAppendCall) => serveBatchAppend(this, call),
      delete: (call: ServerUnaryCall<DeleteReq, DeleteResp>, reply: sendUnaryData<DeleteResp>) =>
        void this.delete(call, reply),
      tombstone: (call: ServerUnaryCall<TombstoneReq, TombstoneResp>, reply: sendUnaryData<TombstoneResp>) =>
        void this.tombstone(call, reply),
    })
    this.server.addService(featuresGrpc.ServerFeaturesService as never, {
      getSupportedMethods: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, this.features()),
    })
    this.server.addService(operationsGrpc.OperationsService as never, {
      startScavenge: (_call: unknown, reply: sendUnaryData<unknown>) => void this.scavenge(reply),
      stopScavenge: (_call: unknown, reply: sendUnaryData<unknown>) => void this.stopScavenge(reply),
    })
    this.server.addService(gossipGrpc.GossipService as never, {
      read: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, this.gossip()),
    })
  }

  get url(): string {
    return `esdb://127.0.0.1:${this.port}?tls=false`
  }

  async listen(port: number): Promise<void> {
    const { tls } = this.options
    const pair = tls && { private_key: tls.key, cert_chain: tls.certificate }
    const credentials =
      pair === undefined ? ServerCredentials.createInsecure() : ServerCredentials.createSsl(null, [pair])
    widenStreams(this.server)
    this.port = await new Promise<number>((resolve, reject) =>
      this.server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    )
    widenConnections(this.server)
    this.leaderPort = this.port
  }

  async close(): Promise<void> {
    this.server.forceShutdown()
    this.store.close()
  }

  private async read(call: ReadCall): Promise<void> {
    const failure = await this.disturbed(call)
    if (failure === 'silent') return
    if (failure !== undefined) return void call.emit('error', failure)
    await serveRead(this.store, call, this.subscriptions)
  }

  private async append(
    call: ServerReadableStream<AppendReq, AppendResp>,
    reply: sendUnaryData<AppendResp>,
  ): Promise<void> {
    const requests = await requestsOf(call)
    const failure = await this.disturbed(call)
    // A client that was killed sends half of what it meant to, and no error.
    if (failure === 'silent' || call.cancelled || requests.length < 2) return
    if (failure !== undefined) return reply(failure)
    const options = requests[0].getOptions()!
    const events = requests.slice(1).map((request) => proposedOf(request.getProposedMessage()!))
    const bytes = events.reduce((sum, event) => sum + sizeOnDisk(event), 0)
    if (bytes > APPEND_BYTES_MAX) return reply(appendTooLarge(APPEND_BYTES_MAX))
    const stream = nameOf(options.getStreamIdentifier())
    if (this.store.isTombstoned(stream)) return reply(streamDeleted(stream))
    const expected = expectedOf(options, options.getRevision())
    const write = (): AppendResp => appendAnswer(this.store.append(stream, events, expected), expected)
    if (this.fault === 'lateCommit' || this.fault === 'lostAnswer') this.struck++
    if (this.fault === 'lateCommit') {
      setTimeout(write, LATE_MS)
      return reply({ code: status.ABORTED, details: 'Operation timed out' })
    }
    const answer = write()
    if (this.fault !== 'lostAnswer') reply(null, answer)
  }

  private async delete(call: ServerUnaryCall<DeleteReq, DeleteResp>, reply: sendUnaryData<DeleteResp>): Promise<void> {
    const failure = await this.disturbed(call)
    if (failure === 'silent') return
    if (failure !== undefined) return reply(failure)
    if (this.fault === 'noDelete') this.struck++
    if (this.fault === 'noDelete') return reply({ code: status.UNAVAILABLE, details: 'not now' })
    const deleted = this.store.delete(nameOf(call.request.getOptions()?.getStreamIdentifier()))
    const answer = new streamsPb.DeleteResp()
    if (deleted !== undefined) answer.setPosition(positionOf(new streamsPb.DeleteResp.Position(), deleted.position))
    reply(null, answer)
  }

  private async tombstone(
    call: ServerUnaryCall<TombstoneReq, TombstoneResp>,
    reply: sendUnaryData<TombstoneResp>,
  ): Promise<void> {
    const { position } = this.store.tombstone(nameOf(call.request.getOptions()?.getStreamIdentifier()))
    const told = positionOf(new streamsPb.TombstoneResp.Position(), position)
    reply(null, new streamsPb.TombstoneResp().setPosition(told))
  }

  async disturbed(call?: { metadata: Metadata }): Promise<'silent' | CallFailure | undefined> {
    if (this.delayMs > 0) await pause(this.delayMs)
    const { user } = this.options
    const basic = `Basic ${Buffer.from(user ?? '').toString('base64')}`
    if (user !== undefined && call?.metadata.get('authorization')[0] !== basic)
      return { code: status.UNAUTHENTICATED, details: 'Unauthenticated' }
    if (this.fault !== undefined && !OF_ONE_KIND.has(this.fault)) this.struck++
    if (this.fault === 'silence') return 'silent'
    if (this.fault === 'notReady') return { code: status.UNAVAILABLE, details: 'Server Is Not Ready' }
    if (this.fault === 'forbidden') return accessDenied()
    if (this.fault !== 'notLeader') return undefined
    const metadata = new Metadata()
    metadata.set('exception', 'not-leader')
    metadata.set('leader-endpoint-host', '127.0.0.1')
    metadata.set('leader-endpoint-port', String(this.leaderPort))
    return { code: status.NOT_FOUND, details: 'Leader info available', metadata }
  }

  private async scavenge(reply: sendUnaryData<unknown>): Promise<void> {
    const failure = await this.disturbed()
    if (failure === 'silent') return
    if (failure !== undefined) return reply(failure)
    if (!this.mayScavenge) return reply(accessDenied())
    const scavengeId = randomUUID()
    this.store.journal('$scavenges', '$scavengeStarted', { scavengeId })
    this.openScavenges.push(scavengeId)
    if (this.scavengeEnd !== 'later') this.endScavenges(this.scavengeEnd)
    const result = operationsPb.ScavengeResp.ScavengeResult.STARTED
    reply(null, new operationsPb.ScavengeResp().setScavengeId(scavengeId).setScavengeResult(result))
  }

  endScavenges(result: 'Success' | 'Failed'): void {
    for (const scavengeId of this.openScavenges.splice(0)) {
      const spaceSaved = result === 'Success' ? this.store.scavenge() : 0
      this.store.journal('$scavenges', '$scavengeCompleted', { scavengeId, result, spaceSaved })
      if (result === 'Success') this.scavenges++
    }
  }

  private async stopScavenge(reply: sendUnaryData<unknown>): Promise<void> {
    const failure = await this.disturbed()
    if (failure === 'silent') return
    reply(failure ?? (this.mayScavenge ? { code: status.NOT_FOUND, details: 'Scavenge not found' } : accessDenied()))
  }

  private features(): unknown {
    const methods = new featuresPb.SupportedMethods().setEventStoreServerVersion(this.version)
    for (const name of ['read', 'append', 'batchappend', 'delete']) {
      const service = 'event_store.client.streams.streams'
      methods.addMethods(new featuresPb.SupportedMethod().setMethodName(name).setServiceName(service))
    }
    return methods
  }

  private gossip(): unknown {
    const { LEADER, FOLLOWER } = clientPb.MemberInfo.VNodeState
    const members = [...new Set([this.port, this.leaderPort])].map((port) =>
      new clientPb.MemberInfo()
        .setIsAlive(true)
        .setHttpEndPoint(new clientPb.EndPoint().setAddress('127.0.0.1').setPort(port))
        .setState(port === this.leaderPort ? LEADER : FOLLOWER),
    )
    return new clientPb.ClusterInfo().setMembersList(members)
  }
}
