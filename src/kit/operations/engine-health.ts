import type { Clock } from '../../kernel/clock.ts'
import type { Metrics } from './metrics.ts'

export interface Pinged {
  ping(): Promise<void>
}

const PING_TIMEOUT_MS = 1_000
const CACHED_MS = 1_000
const EVERY_MS = 5_000

/** Checks whether the storage engines answer: for `/readyz` on request, and for the metrics now and then. */
export class EngineHealth {
  private readonly options: { engines: { [name: string]: Pinged }; metrics: Metrics; clock: Clock }
  private last: { at: number; down: Promise<string[]> } | undefined
  private cancel = (): void => undefined

  constructor(options: { engines: { [name: string]: Pinged }; metrics: Metrics; clock: Clock }) {
    this.options = options
    const beat = (): void => {
      void this.down()
      this.cancel = options.clock.after(EVERY_MS, beat)
    }
    beat()
  }

  /** Names of the engines that do not answer. At most one ping of each is under way in a second. */
  down(): Promise<string[]> {
    const now = this.options.clock.monotonic()
    if (this.last === undefined || now - this.last.at >= CACHED_MS) this.last = { at: now, down: this.pingAll() }
    return this.last.down
  }

  close(): void {
    this.cancel()
  }

  private async pingAll(): Promise<string[]> {
    const names = Object.keys(this.options.engines)
    const answers = await Promise.all(names.map((name) => this.answers(name)))
    return names.filter((_, i) => !answers[i])
  }

  private async answers(name: string): Promise<boolean> {
    let cancel = (): void => undefined
    const tooLate = new Promise<never>((_, reject) => {
      cancel = this.options.clock.after(PING_TIMEOUT_MS, () => reject(new Error(`${name} does not answer`)))
    })
    try {
      await Promise.race([this.options.engines[name].ping(), tooLate])
      this.options.metrics.engineUp.set({ engine: name }, 1)
      return true
    } catch {
      // The gauge and the answer of /readyz are the record.
      this.options.metrics.engineUp.set({ engine: name }, 0)
      return false
    } finally {
      cancel()
    }
  }
}
