import { openApp, type App, type Bounds } from '../app.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import type { Logger } from '../kernel/logger.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { createLogger } from '../kit/operations/logger.ts'
import { banner, shownLogin, SIGN_IN } from './banner.ts'
import { serveControl } from './control-socket.ts'
import { runDemo } from './demo.ts'
import { npmParent } from './npm-parent.ts'

/** Runs the service until SIGTERM or SIGINT; a second one ends it at once. */
export const startCommand = async (config: Config, bounds?: Bounds): Promise<number> => {
  const logger = createLogger()
  const stopped = stopSignal()
  // A write beyond a limit of file sizes fails then and says so; without a listener it ends the process without a word.
  process.on('SIGXFSZ', () => undefined)
  const app = await opened(config, logger, bounds)
  const control = await serveControl(config.dataPath, (request) => app.control(request))
  logger.info('listening', { url: app.url, data: config.dataPath, node: process.version, pid: process.pid })
  const demoEnd = new AbortController()
  if (!config.demo) process.stderr.write(banner(app.url, config.dataPath, SIGN_IN))
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
    logger,
    signal,
    onLogin: (login) => {
      const { fields, signIn } = shownLogin(config, login)
      app.showDemoLogin({ ...login, isPublic: config.demoLoginPublic })
      createLogger('info', ['password']).info('demo', { url: app.url, ...fields })
      process.stderr.write(banner(app.url, config.dataPath, signIn))
    },
  }).catch((error: unknown) => {
    // The service is there without it.
    if (!signal.aborted) logger.error('the demo cannot run', { error: String(error) })
  })

const PARENT_CHECK_MS = 500
/** Ctrl+C reaches the service twice below npm: from the terminal, and passed on by npm. */
const SAME_KEY_PRESS_MS = 300

/** Resolves with what asks the service to stop: a signal, or the end of the npm that started it. A second one ends it at once. */
const stopSignal = (): Promise<string> =>
  new Promise((done) => {
    const npm = npmParent()
    let askedAt: number | undefined
    const stop = (reason: string): void => {
      if (askedAt === undefined) {
        askedAt = performance.now()
        clearInterval(watch)
        done(reason)
      } else if (npm === undefined || performance.now() - askedAt > SAME_KEY_PRESS_MS) process.exit(1)
    }
    const watch = setInterval(() => {
      if (npm?.hasEnded()) stop('npm ended')
    }, PARENT_CHECK_MS).unref()
    process.on('SIGTERM', stop).on('SIGINT', stop)
  })
