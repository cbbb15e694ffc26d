import { openApp, type App, type Bounds } from '../app.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import type { Logger } from '../kernel/logger.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { createLogger } from '../kit/operations/logger.ts'
import { serveControl } from './control-socket.ts'
import { runDemo } from './demo.ts'

/** Runs the service until SIGTERM or SIGINT; a second one ends it at once. */
export const startCommand = async (config: Config, bounds?: Bounds): Promise<number> => {
  const logger = createLogger()
  const stopped = stopSignal()
  const app = await opened(config, logger, bounds)
  const control = await serveControl(config.dataPath, (request) => app.control(request))
  logger.info('listening', { url: app.url, data: config.dataPath, node: process.version })
  const demoEnd = new AbortController()
  const demo = config.demo ? startDemo(app, config, logger, demoEnd.signal) : Promise.resolve()
  const signal = await stopped
  logger.info('stopping', { signal })
  demoEnd.abort()
  control.close()
  await app.close()
  await demo
  logger.info('stopped')
  return 0
}

const opened = async (config: Config, logger: Logger, bounds?: Bounds): Promise<App> => {
  try {
    return await openApp(config, logger, bounds)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    // What is wrong at the start is the operator's to mend: one sentence, not a stack.
    throw new ConfigError((error as Error).message)
  }
}

const startDemo = (app: App, config: Config, logger: Logger, signal: AbortSignal): Promise<void> =>
  runDemo({
    url: app.url,
    dataPath: config.dataPath,
    clock: systemClock,
    logger: createLogger('info', ['password']),
    signal,
    onLogin: (login) => app.showDemoLogin(login),
  }).catch((error: unknown) => {
    // The service is there without it.
    if (!signal.aborted) logger.error('the demo cannot run', { error: String(error) })
  })

const stopSignal = (): Promise<string> =>
  new Promise((done) => {
    const end = (): never => process.exit(1)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.on('SIGTERM', end).on('SIGINT', end)
        done(signal)
      })
    }
  })
