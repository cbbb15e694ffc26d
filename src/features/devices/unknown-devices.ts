import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'

const EVERY_MS = 60_000
/** Most names remembered: a port scan must not fill memory. */
const NAMES_MAX = 1_000

const ADVICE: { readonly [code: string]: string } = {
  unknown_tracker: 'create a tracker with this externalId, or give <flag> an ingest key with autoCreate',
  forbidden_tracker: 'the tracker belongs to another hub than the ingest key of <flag>',
  tracker_limit: 'raise --trackers-max, or delete trackers',
}

/** Reports devices whose points are refused: each once a minute, with the remedy. */
export class UnknownDevices {
  private readonly options: { clock: Clock; logger: Logger }
  private readonly told = new Map<string, number>()

  constructor(options: { clock: Clock; logger: Logger }) {
    this.options = options
  }

  note(protocol: string, name: string, code: string): void {
    const now = this.options.clock.now()
    const id = `${protocol} ${name}`
    if (now - (this.told.get(id) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return
    this.told.delete(id)
    this.told.set(id, now)
    if (this.told.size > NAMES_MAX) this.told.delete(this.told.keys().next().value as string)
    const advice = (ADVICE[code] ?? code).replace('<flag>', protocol === 'mqtt' ? '--mqtt-key' : '--devices-key')
    this.options.logger.warn('a device is not known', { protocol, name, code, advice })
  }

  /** Names reported within the last hour, newest first. */
  recent(): string[] {
    const since = this.options.clock.now() - 3_600_000
    return [...this.told]
      .filter(([, at]) => at > since)
      .map(([id]) => id)
      .reverse()
  }
}
