import type { Broadcast } from '../../src/engines/broadcast.ts'

/** What happens to a message on its way to one hearer. */
export interface Way {
  /** How often it arrives. */
  times: number
  /** Turns of the event loop that it takes each time: later ones may come earlier. */
  turns: number
}

const PLAIN: Way = { times: 1, turns: 1 }

/** A broadcast in memory, as several processes have it. */
export class FaultyBroadcast {
  private readonly hearers = new Map<string, Map<string, (bytes: Uint8Array) => void>>()
  /** Asked for each message and hearer. */
  wayOf: () => Way = () => PLAIN

  of(process: string): Broadcast {
    return {
      tell: (topic, bytes) => {
        for (const [hearer, listener] of this.hearers.get(topic) ?? [])
          if (hearer !== process) this.send(() => listener(bytes))
      },
      hear: (topic, listener) => {
        const hearers = this.hearers.get(topic) ?? new Map<string, (bytes: Uint8Array) => void>()
        this.hearers.set(topic, hearers.set(process, listener))
        return () => void hearers.delete(process)
      },
    }
  }

  private send(arrive: () => void): void {
    const { times } = this.wayOf()
    for (let i = 0; i < times; i++) afterTurns(this.wayOf().turns, arrive)
  }
}

const afterTurns = (turns: number, run: () => void): void =>
  void (turns === 0 ? run() : setImmediate(() => afterTurns(turns - 1, run)))
