import type { Clock } from '../kernel/clock.ts'
import type { EngineHealth } from '../kit/operations/engine-health.ts'
import type { ProjectionRunner } from '../kit/consumers/run-projection.ts'
import type { Rebuild } from './rebuilds.ts'
import { lagsOf, type Feeds } from './streams.ts'

/** What the command line asks of a running service. */
export interface ControlRequest {
  command: 'rebuild' | 'sweep' | 'forget' | 'rotateTokenKey' | 'status'
  /** Of the projection or consumer. */
  name?: string
}

const ENGINES = ['log', 'tables', 'history']

export interface Controlled {
  rebuild: Rebuild
  sweep(): Promise<unknown>
  forget(name: string): Promise<unknown>
  /** Lags of consumers that are registered and do not run. */
  absent(): Promise<readonly { consumer: string; events: number; seconds: number }[]>
  /** Answers which token keys there are then. */
  rotateTokenKey(): Promise<unknown>
  runner: ProjectionRunner
  feeds: Feeds
  clock: Clock
  health: EngineHealth
}

export const controlOf =
  ({ rebuild, sweep, forget, rotateTokenKey, absent, runner, feeds, clock, health }: Controlled) =>
  async ({ command, name = '' }: ControlRequest): Promise<unknown> => {
    if (command === 'rebuild') return rebuild(name)
    if (command === 'sweep') return sweep()
    if (command === 'forget') return forget(name)
    if (command === 'rotateTokenKey') return rotateTokenKey()
    if (command !== 'status') throw new Error(`there is no command ${command}`)
    const down = await health.down()
    const lags = [...(await lagsOf(feeds, clock)), ...runner.lags(), ...(await absent())]
    return {
      engines: Object.fromEntries(ENGINES.map((engine) => [engine, !down.includes(engine)])),
      consumers: worstByConsumer(lags),
    }
  }

const worstByConsumer = (
  lags: readonly { consumer: string; events: number; seconds: number }[],
): { consumer: string; events: number; seconds: number }[] => {
  const worst = new Map<string, { consumer: string; events: number; seconds: number }>()
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
