import type { Broadcast } from '../../engines/broadcast.ts'
import { type Appended, type EventLog, logWith } from '../../engines/event-log.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { NewEvent, RecordedEvent } from '../../kernel/event.ts'

/** Numbers at the beginning of a told event: revision, position, time, each as a float of 8 bytes. */
const NUMBERS_BYTES = 24
const HEAD_BYTES = NUMBERS_BYTES + 2

interface ToldServices {
  broadcast: Broadcast
  clock: Clock
}

/**
 * What this process appends, told to the others that follow the same streams: each event costs them far less than it
 * does over a subscription to the log, and comes no later. Only what is durable is told, and what is lost on its way is
 * read from the log.
 */
export class ToldEvents {
  private readonly broadcast: Broadcast
  private readonly clock: Clock
  /** Types of events that are told. */
  private readonly types: ReadonlySet<string>

  constructor({ broadcast, clock }: ToldServices, types: readonly string[]) {
    this.broadcast = broadcast
    this.clock = clock
    this.types = new Set(types)
  }

  /** The log, whose appends are told. */
  telling(log: EventLog): EventLog {
    return logWith(log, async (stream, events, expected) => {
      const appended = await log.append(stream, events, expected)
      this.tell(stream, events, appended)
      return appended
    })
  }

  /** Calls back with events of the stream that other processes have appended; without ids and metadata. */
  hear(stream: string, listener: (event: RecordedEvent) => void): () => void {
    return this.broadcast.hear(stream, (bytes) => listener(decoded(stream, bytes)))
  }

  private tell(stream: string, events: readonly NewEvent[], { revision, position }: Appended): void {
    const loggedAt = this.clock.now()
    for (const [i, event] of events.entries())
      if (this.types.has(event.type)) {
        const at = { revision: revision - events.length + 1 + i, position, loggedAt }
        this.broadcast.tell(stream, encoded(event, at))
      }
  }
}

const encoded = (
  { type, isJson, data }: NewEvent,
  { revision, position, loggedAt }: Pick<RecordedEvent, 'revision' | 'position' | 'loggedAt'>,
): Uint8Array => {
  const typeBytes = Buffer.byteLength(type)
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + typeBytes + data.byteLength)
  bytes.writeDoubleLE(revision, 0)
  bytes.writeDoubleLE(position, 8)
  bytes.writeDoubleLE(loggedAt, 16)
  bytes.writeUInt8(isJson ? 1 : 0, NUMBERS_BYTES)
  bytes.writeUInt8(typeBytes, NUMBERS_BYTES + 1)
  bytes.write(type, HEAD_BYTES)
  bytes.set(data, HEAD_BYTES + typeBytes)
  return bytes
}

const decoded = (stream: string, { buffer, byteOffset, byteLength }: Uint8Array): RecordedEvent => {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const dataFrom = HEAD_BYTES + bytes.readUInt8(NUMBERS_BYTES + 1)
  return {
    id: '',
    stream,
    type: bytes.toString('utf8', HEAD_BYTES, dataFrom),
    revision: bytes.readDoubleLE(0),
    position: bytes.readDoubleLE(8),
    loggedAt: bytes.readDoubleLE(16),
    isJson: bytes.readUInt8(NUMBERS_BYTES) === 1,
    metadata: {},
    data: new Uint8Array(bytes.subarray(dataFrom)), // a copy: numbers in it are read where they stand, at multiples of 8
  }
}
