import type { EventLog } from '../../src/engines/event-log.ts'

/** What a process that was killed says: nothing that answers it is ever a client's answer. */
export class Killed extends Error {
  constructor() {
    super('killed')
    this.name = 'Killed'
  }
}

export interface DyingLog {
  log: EventLog
  /** Streams that were appended to, in order. */
  readonly appended: readonly string[]
  readonly isDead: boolean
}

/** The log as a process sees it that dies after so many writes: from then on every call fails, for good. */
export const dyingLog = (log: EventLog, writes: number): DyingLog => {
  const appended: string[] = []
  let left = writes
  let isDead = false
  const alive = (): void => {
    if (isDead) throw new Killed()
  }
  const write = (): void => {
    if (left <= 0) isDead = true
    alive()
    left--
  }
  return {
    get appended() {
      return appended
    },
    get isDead() {
      return isDead
    },
    log: {
      append: async (stream, events, expected) => {
        write()
        const answer = await log.append(stream, events, expected)
        appended.push(stream)
        return answer
      },
      read: async (...args) => {
        alive()
        return log.read(...args)
      },
      follow: (...args) => {
        alive()
        return log.follow(...args)
      },
      head: async (stream) => {
        alive()
        return log.head(stream)
      },
      headPosition: async () => {
        alive()
        return log.headPosition()
      },
      truncateBefore: async (stream, revision) => {
        write()
        return log.truncateBefore(stream, revision)
      },
      erase: async (stream) => {
        alive()
        return log.erase(stream)
      },
      ping: () => log.ping(),
      close: () => log.close(),
    },
  }
}
