import type { Caller } from '../../../kernel/caller.ts'
import { CLOSE, type Channel, type ChannelConnection, type ChannelSocket } from '../../../kit/http/channel.ts'
import { countRepeats } from './build-batch.ts'
import { readFrame, type Frame } from './frame.ts'
import { FrameTicket } from './frame-ticket.ts'
import { GatheredFrames } from './gathered-frames.ts'
import type { PackedFrame } from './pack-points.ts'
import type { PointColumns } from '../point-columns.ts'
import type { PointStore } from './store.ts'

/** Most unacknowledged frames of a sender, and their bytes: one window of tiny frames per beat for a gateway. */
export const WINDOW_FRAMES = 1_024
export const WINDOW_BYTES = 2 * 1024 * 1024
export const FRAME_BYTES_MAX = 1024 * 1024
/** Bounds for a peer that does not read: above the first acknowledgements wait, above the second it is closed. */
const BUFFER_BYTES_LOW = 64 * 1024
const BUFFER_BYTES_MAX = 8 * 1024 * 1024
/** Gathered frames enter an append as one piece: an eighth of it leaves organizations their turns. */
const GATHERED_SHARE = 8

/** `/ingest`: points in, cumulative acknowledgements out, once they are durable. */
export const ingestChannel = (store: PointStore): Channel => {
  const gathered = new GatheredFrames(Math.ceil(store.batcher.options.limits.batchPointsMax / GATHERED_SHARE))
  return {
    path: '/ingest',
    accepts: ['tracker', 'user', 'ingestKey'],
    open: (socket, caller) => new IngestConnection(store, gathered, socket, caller),
  }
}

class IngestConnection implements ChannelConnection {
  private readonly store: PointStore
  private readonly gathered: GatheredFrames
  private readonly socket: ChannelSocket
  private caller: Caller
  private lastSeq = 0
  private ackedSeq = 0
  /** Those of unacknowledged frames in order of arrival, from `first` on. */
  private tickets: FrameTicket[] = []
  private first = 0
  /** Unacknowledged. */
  private frames = 0
  private bytes = 0
  /** Of the gathered frames: the last one. */
  private gathering: FrameTicket | undefined
  /** Frames that wait until the previous one knows its trackers. */
  private held: { ticket: FrameTicket; frame: Frame }[] = []
  private isResolving = false
  private isAckDue = false
  isOver = false

  constructor(store: PointStore, gathered: GatheredFrames, socket: ChannelSocket, caller: Caller) {
    this.store = store
    this.gathered = gathered
    this.socket = socket
    this.caller = caller
    socket.send(`{"type":"ready","window":${WINDOW_FRAMES},"windowBytes":${WINDOW_BYTES}}`)
  }

  message(data: ArrayBuffer, isBinary: boolean): void {
    if (this.isOver || this.store.batcher.isClosed) return // not acknowledged: the restart closes with 1012
    if (data.byteLength > FRAME_BYTES_MAX) return this.end(CLOSE.tooLarge, 'a frame takes at most 1 MiB')
    // Frames that wait for another's trackers are packed when it is their turn.
    const scanned = isBinary || this.isResolving ? undefined : this.store.scan(this.caller, new Uint8Array(data))
    if (scanned !== undefined) {
      const seq = this.admit(scanned.seq === 0 ? undefined : scanned.seq, data.byteLength)
      if (seq > 0) this.takePacked(seq, data.byteLength, scanned.frame)
      return
    }
    const frame = readFrame(data, isBinary)
    if ('close' in frame) return this.end(frame.close, frame.reason)
    const seq = this.admit(frame.seq, data.byteLength)
    if (seq === 0) return
    if (!this.isResolving && frame.fault === undefined)
      return this.takePacked(seq, data.byteLength, this.store.pack(this.caller, frame.content))
    const ticket = this.ticketOf(seq, data.byteLength)
    if (!this.isResolving) this.take(ticket, frame)
    else if (this.hold(ticket)) this.held.push({ ticket, frame: detached(frame) })
  }

  drain(): void {
    this.acknowledge()
  }

  reauthorized(caller: Caller): void {
    this.caller = caller
  }

  /** Accepted points stay on their way to the log, including those that wait for their trackers. */
  closed(): void {
    this.isOver = true
  }

  frameIsDurable(ticket: FrameTicket): void {
    // All frames that one append made durable are acknowledged together.
    if (this.isAckDue || this.isOver || this.tickets[this.first] !== ticket) return
    this.isAckDue = true
    queueMicrotask(() => this.acknowledge())
  }

  /** Admits a frame to the window; its number, or 0 if that ended the connection. */
  private admit(asked: number | undefined, bytes: number): number {
    const seq = asked ?? this.lastSeq + 1
    if (seq <= this.lastSeq) this.end(CLOSE.badMessage, 'seq does not rise')
    else if (this.frames >= WINDOW_FRAMES || (this.bytes > 0 && this.bytes + bytes > WINDOW_BYTES))
      this.end(CLOSE.tooFast, 'more is unacknowledged than the window allows')
    if (this.isOver) return 0
    this.lastSeq = seq
    this.frames++
    this.bytes += bytes
    return seq
  }

  /** For a frame that follows all earlier ones by itself. */
  private ticketOf(seq: number, bytes: number): FrameTicket {
    this.gathered.flushOf(this)
    const ticket = new FrameTicket(this, seq, bytes, this.store.count)
    this.tickets.push(ticket)
    return ticket
  }

  private takePacked(seq: number, bytes: number, packed: PackedFrame): void {
    if (!this.gathered.takes(packed)) return this.send(this.ticketOf(seq, bytes), packed)
    const { count } = packed.columns
    this.gathered.makeRoom(this, count)
    if (this.isOver) return
    if (this.gathering === undefined) this.gathering = this.ticketOf(seq, bytes)
    else this.gathering.include(seq, bytes)
    this.gathering.judgedGood(count, count === 1 ? 0 : countRepeats(packed.columns))
    this.gathered.add(this, packed)
  }

  submitGathered(columns: PointColumns): void {
    const ticket = this.gathering as FrameTicket
    this.gathering = undefined
    if (!this.store.batcher.submit(this.caller.organizationId, columns, 0, ticket, false)) this.endFull()
  }

  private take(ticket: FrameTicket, frame: Frame): void {
    if (frame.fault !== undefined) {
      if (!this.isOver) this.socket.send(JSON.stringify({ type: 'error', code: 'invalid', message: frame.fault }))
      this.refuseAll(ticket, frame)
      return
    }
    this.send(ticket, this.store.pack(this.caller, frame.content))
  }

  private send(ticket: FrameTicket, packed: PackedFrame): void {
    const taken = this.store.send(this.caller, packed, ticket, false)
    if (taken === false) this.endFull()
    else if (taken !== true) void this.waitFor(taken)
  }

  /** While the log refuses to create trackers, later frames wait, as they would in the queue. */
  private async waitFor(taken: Promise<boolean>): Promise<void> {
    this.isResolving = true
    const isTaken = await taken.catch(() => false) // rejects only if the connection is over
    this.isResolving = false
    if (!isTaken) return this.endFull()
    while (this.held.length > 0 && !this.isResolving) {
      const { ticket: next, frame } = this.held.shift() as (typeof this.held)[number]
      this.release(next)
      this.take(next, frame)
    }
  }

  /** False if too much of the organization is waiting: that ended the connection. */
  private hold({ bytes }: FrameTicket): boolean {
    if (this.store.batcher.hold(this.caller.organizationId, bytes)) return true
    this.endFull()
    return false
  }

  private release({ bytes }: FrameTicket): void {
    this.store.batcher.release(this.caller.organizationId, bytes)
  }

  private dropHeld(): void {
    for (const { ticket } of this.held) this.release(ticket)
    this.held = []
  }

  /** Points not accepted because the service stops are not acknowledged: the restart closes with 1012. */
  private endFull(): void {
    this.dropHeld()
    if (!this.store.batcher.isClosed) this.end(CLOSE.tooFast, "the organization's queue is full")
  }

  /** Rejects all points of a frame with unknown content, each by its index. */
  private refuseAll(ticket: FrameTicket, { fault, content }: Frame): void {
    const count = 'count' in content ? content.count : content.length
    ticket.rejected = Array.from({ length: count }, (_, index) => ({
      index,
      code: 'invalid' as const,
      message: fault as string,
    }))
    if (count > 0) this.frameIsJudged(ticket)
    ticket.durable()
  }

  frameIsJudged({ seq, rejected }: FrameTicket): void {
    if (this.isOver) return
    if (this.socket.send(JSON.stringify({ type: 'reject', seq, rejected })) > BUFFER_BYTES_MAX)
      this.end(CLOSE.tooFast, 'answers are not read')
  }

  private acknowledge(): void {
    this.isAckDue = false
    if (this.isOver || this.socket.bufferedBytes() > BUFFER_BYTES_LOW) return
    while (this.first < this.tickets.length && this.tickets[this.first].isDurable) {
      const { seq, frames, bytes } = this.tickets[this.first++]
      this.frames -= frames
      this.bytes -= bytes
      this.ackedSeq = seq
    }
    if (this.first === 0) return
    this.tickets = this.first === this.tickets.length ? [] : this.tickets.slice(this.first)
    this.first = 0
    this.socket.send(`{"type":"ack","seq":${this.ackedSeq}}`)
  }

  private end(code: number, reason: string): undefined {
    if (this.isOver) return undefined
    this.isOver = true
    this.socket.close(code, reason)
    return undefined
  }
}

/** Copies a binary message, whose memory returns to the socket after the call. */
const detached = (frame: Frame): Frame => {
  if (!('count' in frame.content)) return frame
  const content = { ...frame.content }
  for (const [name, column] of Object.entries(content))
    if (ArrayBuffer.isView(column)) Object.assign(content, { [name]: (column as Uint32Array).slice() })
  return { ...frame, content }
}
