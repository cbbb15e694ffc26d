import { setTimeout } from 'node:timers/promises'
import { openApp, type App, type Bounds } from '../app.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { isEmbedded } from '../engine-urls.ts'
import type { Logger } from '../kernel/logger.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { createLogger } from '../kit/operations/logger.ts'
import { banner, shownLogin, SIGN_IN } from './banner.ts'
import { serveControl } from './control-socket.ts'
import { sentenceOf } from './sentence.ts'
import { endsInTime, type StopSignal, stopSignal } from './stop-signal.ts'

/** Time for a start to end by itself after a request to stop. */
const START_END_MS = 3_000

/** Runs until SIGTERM or SIGINT, which during the start ends it before it serves; a second one ends it at once. */
export const startCommand = async (
  config: Config,
  bounds?: Bounds,
  stop: StopSignal = stopSignal(),
): Promise<number> => {
  const logger = createLogger()
  if (stop.isAsked()) return 0
  // With a listener, a write beyond a file size limit fails with an error; without one it silently ends the process.
  process.on('SIGXFSZ', () => undefined)
  const app = await Promise.race([
    opened(config, logger, bounds),
    stop.asked.then(() => setTimeout(START_END_MS, undefined, { ref: false })),
  ])
  if (app === undefined) {
    // Interrupted work resumes from its stored state: a start may have minutes of log to follow.
    logger.info('stopped')
    process.exit(0)
  }
  if (stop.isAsked()) return close(app, { config, logger, signal: await stop.asked })
  const control = await serveControl(config.dataPath, (request) => app.control(request))
  logger.info('listening', { url: app.url, data: config.dataPath, node: process.version, pid: process.pid })
  const demoEnd = new AbortController()
  if (!config.demo) process.stderr.write(banner(app.url, config.dataPath, SIGN_IN))
  const demo = config.demo ? startDemo(app, config, logger, demoEnd.signal) : Promise.resolve()
  const signal = await stop.asked
  demoEnd.abort()
  control.close()
  const code = await close(app, { config, logger, signal })
  await demo
  return code
}

const close = async (app: App, { config, logger, signal }: Closing): Promise<number> => {
  logger.info('stopping', { signal })
  const { logUrl, tablesUrl, historyUrl, filesUrl } = config
  const isAlone = [logUrl, tablesUrl, historyUrl, filesUrl].every(isEmbedded)
  if (await endsInTime(app.close(), systemClock, isAlone ? undefined : CLOSE_MS)) {
    logger.info('stopped')
    return 0
  }
  logger.error(
    'stopped without an orderly end, because an engine does not answer; nothing that was acknowledged is lost',
  )
  process.exit(1)
}

interface Closing {
  config: Config
  logger: Logger
  signal: string
}

/** Limit of closing, against silent servers; below the 30 s in docker-compose.yml and docs/deploying.md. */
const CLOSE_MS = 25_000

const opened = async (config: Config, logger: Logger, bounds?: Bounds): Promise<App> => {
  try {
    return await openApp(config, logger, bounds)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    // Errors at the start are the operator's to fix: one sentence, not a stack.
    throw new ConfigError(sentenceOf(error), { cause: error })
  }
}

const startDemo = async (app: App, config: Config, logger: Logger, signal: AbortSignal): Promise<void> => {
  const { runDemo } = await import('./demo.ts')
  await runDemo({
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
    // The service runs without it.
    if (!signal.aborted) logger.error('the demo cannot run', { error: String(error) })
  })
}
