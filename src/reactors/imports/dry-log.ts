import type { EventLog } from '../../engines/event-log.ts'

/** A row would have been written. */
export class WouldWrite extends Error {}

/** A log for reading only: the first append reports that nothing prevented the write. */
export const dryLog = (log: EventLog): EventLog =>
  new Proxy(log, {
    get: (target, name) => {
      if (name === 'append') return () => Promise.reject(new WouldWrite())
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
