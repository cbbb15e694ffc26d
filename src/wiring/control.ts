import type { Clock } from '../kernel/clock.ts'
import type { EngineHealth } from '../kit/engine-health.ts'
import type { ProjectionRunner } from '../kit/run-projection.ts'
import { lagsOf, type Feeds } from './streams.ts'

/** What the command line asks of a running service. */
export interface ControlRequest {
  command: 'rebuild' | 'forget' | 'status'
  /** Of the projection or consumer. */
  name?: string
}

const ENGINES = ['log', 'tables', 'history']

export const controlOf =
  ({ runner, feeds, clock, health }: { runner: ProjectionRunner; feeds: Feeds; clock: Clock; health: EngineHealth }) =>
  async ({ command, name = '' }: ControlRequest): Promise<unknown> => {
    if (command === 'rebuild') return runner.rebuild(name, { compare: true })
    if (command !== 'status') throw new Error(`there is no command ${command}`)
    const down = await health.down()
    const lags = [...lagsOf(feeds, clock), ...(await runner.lags())]
    return { engines: Object.fromEntries(ENGINES.map((engine) => [engine, !down.includes(engine)])), consumers: worstByConsumer(lags) }
  }

const worstByConsumer = (lags: readonly { consumer: string; events: number; seconds: number }[]): { consumer: string; events: number; seconds: number }[] => {
  const worst = new Map<string, { consumer: string; events: number; seconds: number }>()
  for (const { consumer, events, seconds } of lags) {
    const known = worst.get(consumer)
    worst.set(consumer, { consumer, events: (known?.events ?? 0) + events, seconds: Math.max(known?.seconds ?? 0, seconds) })
  }
  return [...worst.values()]
}
