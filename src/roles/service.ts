import type { Config } from '../config.ts'
import type { HttpCaller } from '../engines/http-caller.ts'
import { createAuthenticator } from '../features/identity/authenticate.ts'
import { Tokens } from '../features/identity/tokens.ts'
import { ingestChannel } from '../features/locations/ingest/channel.ts'
import { LATEST_POSITIONS } from '../features/locations/views.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import { settling } from '../kit/consumers/settle.ts'
import { EngineHealth } from '../kit/operations/engine-health.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import { createMetrics } from '../kit/operations/metrics.ts'
import { operationsRoutes } from '../kit/operations/operations-routes.ts'
import { ProjectionRunner } from '../kit/consumers/run-projection.ts'
import type { Services } from '../kit/services.ts'
import { liveChannel } from '../live/client.ts'
import type { ProcessRunner } from '../processes/runner.ts'
import { webhookAction } from '../reactors/dispatch/actions/webhook.ts'
import { TableDirectory } from '../reactors/dispatch/directory.ts'
import { pageRoutes, type DemoLogin } from '../web/page.ts'
import { openAccess } from './access.ts'
import { closeAll } from './close-all.ts'
import { openConsumers } from './consumers.ts'
import { controlOf, type ControlRequest } from './control.ts'
import { openGeofences } from './geofences.ts'
import { InTurn } from './in-turn.ts'
import { openIngest } from './ingest.ts'
import { openIngress } from './ingress.ts'
import { noteTrackers, openLive } from './live.ts'
import { listProjections } from './projections.ts'
import { openProcesses } from './processes.ts'
import { openReactors } from './reactors.ts'
import { lacksPositions, openRebuilds } from './rebuilds.ts'
import { inRollout } from './rollout.ts'
import { listRoutes } from './routes.ts'
import { lagsOf, openFeeds, showLags } from './streams.ts'
import { openSweep } from './sweep.ts'

export interface App {
  url: string
  /** Shown on the page while the demo runs. */
  showDemoLogin(login: DemoLogin): void
  /** What the command line asks through the data folder. */
  control(request: ControlRequest): Promise<unknown>
  /** Stops accepting, appends and acknowledges what was taken, stores read models, closes engines. */
  close(): Promise<void>
}

export interface ServiceParts {
  config: Config
  services: Services & { processes: ProcessRunner }
  origin: LogOrigin
  caller: HttpCaller
  closeEngines(): Promise<void>
  rotateTokenKey(): Promise<unknown>
  /** Points that a back-test reads for one answer; more make it a job. */
  backtestPointsMax?: number
}

/** Requests that have begun may store what they bring; with the rest of the end it stays below the 10 s that containers are given. */
const CLOSE_REQUESTS_MS = 3_000
const CLOSE_BATCHER_MS = 10_000

/** Everything on top of the engines, in the order in which it must begin; it ends in the opposite order. */
export const openService = async ({
  config,
  services,
  origin,
  caller,
  rotateTokenKey,
  closeEngines,
  backtestPointsMax,
}: ServiceParts): Promise<App> => {
  const { log, tables, history, clock, logger, keyring } = services
  const metrics = createMetrics()
  const health = new EngineHealth({ engines: { log, tables, history }, metrics, clock })
  const projections = listProjections(config)
  const runner = new ProjectionRunner(services, projections)
  const feeds = openFeeds(log, logger)
  const ingest = openIngest(config, services, metrics, feeds.locations, settling(services, projections))
  const users = createAuthenticator({ tables, clock }, new Tokens(keyring, config.tokenTtlMs))
  const access = openAccess(users, ingest.devices)
  const rollout = inRollout(config)
  const actions = { webhook: webhookAction({ ...services, caller }) }
  const hub = openLive(config, services, origin, metrics, actions)
  await tables.declare(LATEST_POSITIONS)
  runner.onCommitted((changes) => users.noteCommitted(changes))
  runner.onCommitted((changes) => noteTrackers(hub, changes))
  await runner.start()
  await runner.ready()
  const processes = openProcesses(services, metrics)

  const directory = new TableDirectory({ ...services, ages: config, inRollout: rollout })
  const mustRebuildLatest = await lacksPositions(services)
  const consumers = await openConsumers({ config, services, origin, actions, metrics, feeds, hub, directory })
  const turns = new InTurn()
  const rebuild = openRebuilds({ config, services, origin, runner, ...consumers, turns })
  if (mustRebuildLatest) await rebuild('latest-position')
  const sweep = await openSweep({ config, services, metrics, matcher: consumers.matcher, turns })
  const watched = await watchTrackers(services, { ...ingest, onAccessChanged: access.tell })
  const reactors = await openReactors(config, services, origin, settling(services, projections))
  const geofences = await openGeofences({ config, services, backtestPointsMax })

  let demoLogin: DemoLogin | undefined
  let isReady = true
  const routes = listRoutes({
    config,
    services,
    ingest,
    actions,
    directory,
    inRollout: rollout,
    geofences,
  })
  metrics.beforeScrape(async () => showLags(metrics, [...(await lagsOf(feeds, clock)), ...runner.lags()]))
  metrics.beforeScrape(() => metrics.liveClients.set(hub.clientCount))
  const end = async (): Promise<void> => {
    await closeAll(
      [
        processes,
        watched,
        turns,
        sweep,
        reactors,
        ...Object.values(feeds),
        consumers,
        runner,
        geofences,
        health,
        metrics,
      ],
      logger,
    )
    await closeEngines()
  }
  const ingress = await openIngress(config, services, {
    routes: [
      ...routes,
      ...operationsRoutes({ metrics, health, isReady: () => isReady }),
      ...pageRoutes(() => demoLogin),
    ],
    channels: [ingestChannel(ingest.ingest), liveChannel(hub, rollout)],
    authenticate: access.authenticate,
    accessChanged: access.accessChanged,
    settle: settling(services, projections),
    rollout,
    metrics,
  }).catch(async (error: unknown) => {
    await end()
    throw error
  })

  return {
    url: ingress.url,
    showDemoLogin: (login) => {
      demoLogin = login
    },
    control: controlOf({ ...sweep, rebuild, rotateTokenKey, runner, feeds, clock, health }),
    close: async () => {
      isReady = false
      await ingress.stopAccepting(CLOSE_REQUESTS_MS)
      await ingest.batcher.close(CLOSE_BATCHER_MS)
      await ingress.close()
      await end()
    },
  }
}
