import { type EventLog, logWith } from '../../engines/event-log.ts'

/** A row would have been written. */
export class WouldWrite extends Error {}

/** A log for reading only: the first append reports that nothing prevented the write. */
export const dryLog = (log: EventLog): EventLog => logWith(log, () => Promise.reject(new WouldWrite()))
