import { type EventLog, logWith } from '../../engines/event-log.ts'
import { allWrote } from '../../kit/commands/wrote.ts'
import { SETTLE_TIMEOUT_MS, type Settle } from '../../kit/consumers/settle.ts'

/** The log of a job, and a wait until lists show all that the job has appended to it: who reads its end, reads its rows. */
export const listedLog = (log: EventLog, settle: Settle): { log: EventLog; listed(): Promise<void> } => {
  const positions = new Map<string, number>()
  const append: EventLog['append'] = async (stream, events, expected) => {
    const appended = await log.append(stream, events, expected)
    for (const { type } of events) positions.set(type, Math.max(positions.get(type) ?? -1, appended.position))
    return appended
  }
  const listed = async (): Promise<void> => {
    const wrote = allWrote(...Array.from(positions, ([type, position]) => ({ types: [type], position })))
    if (wrote !== undefined) await settle(wrote, SETTLE_TIMEOUT_MS)
  }
  return { log: logWith(log, append), listed }
}
