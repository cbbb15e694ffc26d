import { operatorLink } from '../features/identity/links/operator-link.ts'
import { Failure } from '../kernel/errors.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import type { EngineHealth } from '../kit/operations/engine-health.ts'
import { LogConsumers } from '../reactors/sweep/log-consumers.ts'
import { askUpkeep, upkeepEnd } from '../reactors/upkeep/upkeep.ts'
import { backUp, reportOf } from './backup.ts'
import type { OperationServices } from './services.ts'
import { KEEPING_LOCATIONS } from './upkeep.ts'

/** Request of the command line to a running service. */
export interface ControlRequest {
  command: 'rebuild' | 'sweep' | 'forget' | 'rotateTokenKey' | 'resetPassword' | 'backup' | 'status'
  /** Name of the projection or consumer; e-mail of a person. */
  name?: string
  /** A new password also removes the second factor. */
  endsFactor?: boolean
}

export interface Controlled {
  /** Returns the resulting token keys. */
  rotateTokenKey(): Promise<unknown>
  lags(): Promise<Lag[]>
  /** Ports of devices, and brokers. */
  devices(): { listeners: unknown[]; bridges: unknown[] }
  health: EngineHealth
  /** Aborts waiting for tasks. */
  signal: AbortSignal
}

const ENGINES = ['log', 'tables', 'history']

/** Tasks are requested in the log and done by the process that owns them; keys and figures are this process's. */
export const controlOf =
  (services: OperationServices, { rotateTokenKey, lags, devices, health, signal }: Controlled) =>
  async ({ command, name = '', endsFactor = false }: ControlRequest): Promise<unknown> => {
    if (command === 'rotateTokenKey') return rotateTokenKey()
    if (command === 'resetPassword') {
      const { token, expiresAt } = await operatorLink(services, name, endsFactor)
      return { url: `${services.publicUrl}/reset-password?token=${token}`, expiresAt }
    }
    // Meanwhile nothing is truncated: the history and the log are copied one after the other.
    if (command === 'backup') return services.upkeepTurns.run(() => backUpRunning(services, name))
    if (command === 'rebuild' || command === 'sweep' || command === 'forget')
      return upkeepEnd(services, await askUpkeep(services, { task: command, name }), signal)
    if (command !== 'status') throw new Error(`there is no command ${command}`)
    const engines = await enginesUp(health)
    // Log and tables determine each consumer's lag.
    if (!engines.log || !engines.tables) return { engines, consumers: [], ...devices() }
    try {
      const absent = await new LogConsumers(services, KEEPING_LOCATIONS).absent()
      return { engines, consumers: worstByConsumer([...(await lags()), ...absent]), ...devices() }
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'engine_down')) throw error
      // It was up a moment ago.
      return { engines: await enginesUp(health), consumers: [], ...devices() }
    }
  }

const enginesUp = async (health: EngineHealth): Promise<{ [engine: string]: boolean }> => {
  const down = await health.down()
  return Object.fromEntries(ENGINES.map((engine) => [engine, !down.includes(engine)]))
}

const backUpRunning = async (services: OperationServices, folder: string): Promise<unknown> => {
  const { config, origin } = services
  return reportOf(await backUp({ ...services, keysPath: config.keysPath, logId: origin.logId }, folder))
}

/** Greatest lag of each consumer over its partitions. */
export const worstByConsumer = (
  lags: readonly Pick<Lag, 'consumer' | 'events' | 'seconds'>[],
): Pick<Lag, 'consumer' | 'events' | 'seconds'>[] => {
  const worst = new Map<string, Pick<Lag, 'consumer' | 'events' | 'seconds'>>()
  for (const { consumer, events, seconds } of lags) {
    const known = worst.get(consumer)
    worst.set(consumer, {
      consumer,
      events: (known?.events ?? 0) + events,
      seconds: Math.max(known?.seconds ?? 0, seconds),
    })
  }
  return [...worst.values()]
}
