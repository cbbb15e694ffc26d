import { locationStream } from '../../features/locations/events.ts'
import type { Services } from '../../kit/services.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'

/** Who must have applied a point before the location log may let go of it: one row for each name. */
export const LOG_CONSUMERS: TableDeclaration = { name: 'location_log_consumers', version: 1 }

interface ConsumerRow extends Row {
  name: string
  /** ms since the epoch. */
  registeredAt: number
}

/** How far a consumer is that is registered and does not run. */
export interface AbsentConsumer {
  consumer: string
  partition: number
  /** Events that it has not applied. */
  events: number
  /** Age of the oldest of them. */
  seconds: number
}

/**
 * The register of the consumers of the location log. Each keeps its checkpoint of a partition under `<name>-<partition>`; one
 * that is registered holds the log back there, also when it no longer runs, until it is forgotten.
 */
export class LogConsumers {
  private readonly services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>
  private readonly running: readonly string[]

  /** `running` are the names that this process runs. */
  constructor(services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>, running: readonly string[]) {
    this.services = services
    this.running = running
  }

  /** Registers those that run here. */
  async register(): Promise<void> {
    const { tables, clock } = this.services
    await tables.declare(LOG_CONSUMERS)
    for (const name of this.running) {
      await tables.putIfAbsent({
        table: LOG_CONSUMERS.name,
        scope: NO_ORGANIZATION,
        id: name,
        row: { name, registeredAt: clock.now() } satisfies ConsumerRow,
      })
    }
  }

  /** Revision up to which each one has stored what it read of a partition; -1 for nothing. */
  async checkpointsAt(partition: number): Promise<number[]> {
    return Promise.all((await this.names()).map((name) => this.checkpointAt(name, partition)))
  }

  /** Those that do not run here, with what they have not applied. */
  async absent(): Promise<AbsentConsumer[]> {
    const { log, clock, partitions } = this.services
    const absent: AbsentConsumer[] = []
    for (const consumer of (await this.names()).filter((name) => !this.running.includes(name))) {
      for (let partition = 0; partition < partitions; partition++) {
        const at = await this.checkpointAt(consumer, partition)
        const [oldest] = await log.read(locationStream(partition), at + 1, 1)
        const events = oldest === undefined ? 0 : (await log.head(locationStream(partition))) - oldest.revision + 1
        absent.push({
          consumer,
          partition,
          events,
          seconds: oldest === undefined ? 0 : Math.max(0, clock.now() - oldest.loggedAt) / 1000,
        })
      }
    }
    return absent
  }

  /** Lets go of a consumer that no longer exists. @throws Error for one that runs here, and for one that is not registered. */
  async forget(name: string): Promise<void> {
    const names = await this.names()
    if (this.running.includes(name))
      throw new Error(`${name} runs here and would lose points; only a consumer that no longer exists can be forgotten`)
    if (!names.includes(name))
      throw new Error(`there is no consumer ${name} of the location log; there are ${names.join(', ')}`)
    await this.services.tables.commit([{ table: LOG_CONSUMERS.name, scope: NO_ORGANIZATION, id: name, row: null }])
  }

  private async names(): Promise<string[]> {
    const names: string[] = []
    for await (const { id } of this.services.tables.scan(LOG_CONSUMERS.name, NO_ORGANIZATION)) names.push(id)
    return names
  }

  private async checkpointAt(name: string, partition: number): Promise<number> {
    return (await this.services.tables.checkpoint(`${name}-${partition}`))?.[partition] ?? -1
  }
}
