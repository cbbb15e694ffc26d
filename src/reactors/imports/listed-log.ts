import type { EventLog } from '../../engines/event-log.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import type { Settle } from '../../kit/consumers/settle.ts'

/** As long as a request waits for its own write. */
const LISTED_LIMIT_MS = 2_000

/** The log of a job, and a wait until lists show all that the job has appended to it: who reads its end, reads its rows. */
export const listedLog = (log: EventLog, settle: Settle): { log: EventLog; listed(): Promise<void> } => {
  const positions = new Map<string, number>()
  const append: EventLog['append'] = async (stream, events, expected) => {
    const appended = await log.append(stream, events, expected)
    for (const { type } of events) positions.set(type, Math.max(positions.get(type) ?? -1, appended.position))
    return appended
  }
  const noted = new Proxy(log, {
    get: (target, name) => {
      if (name === 'append') return append
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const listed = async (): Promise<void> => {
    const wrote = allWrote(...Array.from(positions, ([type, position]) => ({ types: [type], position })))
    if (wrote !== undefined) await settle(wrote, LISTED_LIMIT_MS)
  }
  return { log: noted, listed }
}
