import type { EventLog } from '../../engines/event-log.ts'

/** A row would have been written. */
export class WouldWrite extends Error {}

/** A log that everything can be read from and nothing is written to: the first append says that nothing stood against it. */
export const dryLog = (log: EventLog): EventLog =>
  new Proxy(log, {
    get: (target, name) => {
      if (name === 'append') return () => Promise.reject(new WouldWrite())
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
