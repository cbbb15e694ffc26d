import { call, type Service, until } from '../../test/support/service.ts'

/** Resolves once every consumer has handled the whole log. */
export const caughtUp = async (service: Service): Promise<void> => {
  const isBehind = /^waymark_consumer_lag_events\{[^}]*\} (?!0$)/m
  await until('all consumers', async () => !isBehind.test((await call(service, 'GET', '//metrics')).text), 3_600_000)
}

export const IDLE_MS = 20_000
const SETTLED_SHARE = 0.1

/** Share of one core that the idle service takes. */
export const idleShare = async (service: Service, idleMs: number): Promise<number> => {
  const spent = async (): Promise<number> =>
    Number(/^process_cpu_seconds_total (\S+)/m.exec((await call(service, 'GET', '//metrics')).text)?.[1])
  const before = await spent()
  await new Promise((resume) => setTimeout(resume, idleMs))
  return (1_000 * ((await spent()) - before)) / idleMs
}

/** Resolves once consumers are caught up, and the column store has merged its parts: that takes a core, too. */
export const settled = async (service: Service): Promise<void> => {
  await caughtUp(service)
  await until('a service at rest', async () => (await idleShare(service, 1_000)) < SETTLED_SHARE, 600_000)
}
