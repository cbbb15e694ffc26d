import { locationStream } from '../../features/locations/events.ts'
import type { Services } from '../../kit/services.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'

/** Consumers that must have applied a point before the location log may drop it: one row for each name. */
export const LOG_CONSUMERS: TableDeclaration = { name: 'location_log_consumers', version: 1 }

interface ConsumerRow extends Row {
  name: string
  /** ms since the epoch. */
  registeredAt: number
  /** Time of the last report that it runs, ms since the epoch. */
  runsAt: number
}

/** Lag of a registered consumer that runs nowhere. */
export interface AbsentConsumer {
  consumer: string
  partition: number
  /** Events not applied. */
  events: number
  /** Age of the oldest of them. */
  seconds: number
}

type RegisterServices = Pick<Services, 'log' | 'tables' | 'clock' | 'logger' | 'partitions'>

const SAY_MS = 60_000
/** A consumer silent for this long runs nowhere; clocks of processes may differ by less. */
const ABSENT_MS = 5 * SAY_MS

/**
 * The register of the consumers of the location log. Each keeps its checkpoint of a partition under
 * `<name>-<partition>`; a registered one holds the log back there, also when it no longer runs, until it is forgotten.
 */
export class LogConsumers {
  private readonly services: RegisterServices
  private readonly known: readonly string[]

  /** `known` are the names in this version, whether they run at present or not. */
  constructor(services: RegisterServices, known: readonly string[]) {
    this.services = services
    this.known = known
  }

  /** Reports in the register that the known ones run here, now and once a minute. */
  async sayRunning(): Promise<{ close(): void }> {
    const { clock, logger } = this.services
    let cancel: () => void = () => undefined
    const sayLater = (): void => {
      cancel = clock.after(SAY_MS, () => {
        sayLater()
        this.say().catch((error: unknown) =>
          logger.warn('the register of consumers was not written', { error: String(error) }),
        )
      })
    }
    await this.say()
    sayLater()
    return { close: () => cancel() }
  }

  /** Revision through which each one has stored its reads of a partition; -1 for nothing. */
  async checkpointsAt(partition: number): Promise<number[]> {
    return Promise.all((await this.rows()).map(({ name }) => this.checkpointAt(name, partition)))
  }

  /** Consumers that run nowhere, with their lag. */
  async absent(): Promise<AbsentConsumer[]> {
    const { log, clock, partitions } = this.services
    const absent: AbsentConsumer[] = []
    for (const { name: consumer } of (await this.rows()).filter((row) => !this.runs(row))) {
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

  /** Removes a consumer that no longer exists. @throws Error for one that exists, or one that is not registered. */
  async forget(name: string): Promise<void> {
    const rows = await this.rows()
    const row = rows.find((one) => one.name === name)
    if (row === undefined)
      throw new Error(
        `there is no consumer ${name} of the location log; there are ${rows.map((one) => one.name).join(', ')}`,
      )
    if (this.known.includes(name) || this.runs(row))
      throw new Error(`${name} exists and would lose points; only a consumer that no longer exists can be forgotten`)
    await this.services.tables.commit([{ table: LOG_CONSUMERS.name, scope: NO_ORGANIZATION, id: name, row: null }])
  }

  private async say(): Promise<void> {
    const { tables, clock } = this.services
    const now = clock.now()
    await tables.declare(LOG_CONSUMERS)
    const sayOf = async (name: string): Promise<void> => {
      const row = { name, registeredAt: now, runsAt: now } satisfies ConsumerRow
      const change = { table: LOG_CONSUMERS.name, scope: NO_ORGANIZATION, id: name, row }
      const known = await tables.putIfAbsent(change)
      if (known !== undefined) await tables.commit([{ ...change, row: { ...known, runsAt: now } }])
    }
    await Promise.all(this.known.map(sayOf))
  }

  private async rows(): Promise<ConsumerRow[]> {
    const rows: ConsumerRow[] = []
    await this.services.tables.declare(LOG_CONSUMERS)
    for await (const { row } of this.services.tables.scan<ConsumerRow>(LOG_CONSUMERS.name, NO_ORGANIZATION))
      rows.push(row)
    return rows
  }

  private runs({ runsAt }: ConsumerRow): boolean {
    return this.services.clock.now() - runsAt < ABSENT_MS
  }

  private async checkpointAt(name: string, partition: number): Promise<number> {
    return (await this.services.tables.checkpoint(`${name}-${partition}`))?.[partition] ?? -1
  }
}
