import { type EventLog, WrongRevision } from '../../engines/event-log.ts'
import { decodeJson, encodeJson } from '../../kernel/event.ts'

/** Permanent settings of a log, made with it: its first fact. */
export interface LogOrigin {
  /** Tells this log from a restored or migrated one. */
  logId: string
  partitions: number
  /** Name of the function from tracker to partition. */
  hash: 'fnv1a'
  keyringFingerprint: string
  /** Rises with each restore into a new log, so that the first logged event keeps winning. */
  epoch: number
}

export const ORIGIN_STREAM = 'log-origin'
const MADE = 'logMade.v1'

/**
 * Reads the origin of the log, or makes it.
 * @throws Error when this process is configured for another number of partitions or has another keyring.
 */
export const openLogOrigin = async (
  log: EventLog,
  wanted: Pick<LogOrigin, 'partitions' | 'keyringFingerprint'>,
  newId: () => string,
): Promise<LogOrigin> => {
  const origin =
    (await readLogOrigin(log)) ?? (await make(log, { logId: newId(), hash: 'fnv1a', epoch: 0, ...wanted }, newId()))
  if (origin.partitions !== wanted.partitions)
    throw new Error(
      `The log was made with ${origin.partitions} partitions; start with --partitions ${origin.partitions}.`,
    )
  if (origin.keyringFingerprint !== wanted.keyringFingerprint)
    throw new Error('The keyring is not the one that this log was made with; give the right file as --keys.')
  return origin
}

/** Undefined for a log without events. */
export const readLogOrigin = async (log: Pick<EventLog, 'read'>): Promise<LogOrigin | undefined> => {
  const [first] = await log.read(ORIGIN_STREAM, 0, 1)
  return first && decodeJson<LogOrigin>(first.data)
}

const make = async (log: EventLog, origin: LogOrigin, eventId: string): Promise<LogOrigin> => {
  try {
    await log.append(
      ORIGIN_STREAM,
      [{ id: eventId, type: MADE, data: encodeJson(origin), isJson: true, metadata: {} }],
      'none',
    )
    return origin
  } catch (error) {
    const other = error instanceof WrongRevision ? await readLogOrigin(log) : undefined
    if (other === undefined) throw error
    return other
  }
}
