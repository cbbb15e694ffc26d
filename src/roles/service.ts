import type { Role as RoleName } from '../config-flags.ts'
import type { Route } from '../kit/http/route.ts'
import { openPort } from '../ingress/port.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import { tablesOf } from '../kit/consumers/projection.ts'
import { EngineHealth } from '../kit/operations/engine-health.ts'
import { operationsRoutes } from '../kit/operations/operations-routes.ts'
import { version } from '../kit/operations/version.ts'
import { type DemoLogin, pageRoutes } from '../web/page.ts'
import { LATEST_POSITIONS, LATEST_TRACKERS } from '../features/locations/views.ts'
import { openApi } from './api.ts'
import { closeAll } from '../operations/close-all.ts'
import { controlOf, type ControlRequest } from '../operations/control.ts'
import { failedReclaims } from '../operations/failed-reclaims.ts'
import { systemRoute } from '../operations/system.ts'
import { openDevices } from './devices.ts'
import { openDispatcher } from './dispatcher.ts'
import { openDoor } from './door.ts'
import { openIngress } from './ingress.ts'
import { openJobs } from './jobs.ts'
import { openLive } from './live.ts'
import { openMatcher } from './matcher.ts'
import { openProjector } from './projector.ts'
import { openRoles } from './open-roles.ts'
import { type OpenRole, type Role, type RoleServices, roleServices, type ServiceParts } from './role.ts'

export interface App {
  url: string
  /** Shows the login on the page while the demo runs. */
  showDemoLogin(login: DemoLogin): void
  /** Handles requests of the command line, which come through the data folder. */
  control(request: ControlRequest): Promise<unknown>
  /** Stops accepting, appends and acknowledges accepted points, stores read models. The engines stay open. */
  close(): Promise<void>
}

/** Beside the projector; they stop in the opposite order. */
const OTHER_ROLES: readonly [RoleName, OpenRole][] = [
  ['matcher', openMatcher],
  ['dispatcher', openDispatcher],
  ['jobs', openJobs],
  ['live', openLive],
  ['devices', openDevices],
  ['ingress', openIngress],
  ['api', openApi],
]

/** Time for open requests to store their data; closing as a whole stays below the 10 s of containers. */
const CLOSE_REQUESTS_MS = 5_000

/** The page and the system status, for processes that serve the API. */
const ownRoutes = (
  services: RoleServices,
  demoLogin: () => DemoLogin | undefined,
  own: { health: EngineHealth; lags(): ReturnType<typeof lagsOf>; startedAt: number },
): Route[] =>
  services.config.roles.includes('api')
    ? [
        ...pageRoutes(demoLogin, services.config),
        systemRoute({ ...services, ...own, failedReclaims: failedReclaims(services), version: version() }),
      ]
    : []

/** Opens the roles of this process on top of the engines, and the door in front of them. */
export const openService = async (parts: ServiceParts & { rotateTokenKey(): Promise<unknown> }): Promise<App> => {
  // The port opens before tables catch up with the log, which takes minutes after a long absence.
  const port = await openPort(parts.config)
  parts.services.logger.info('starting', { url: port.url })
  const services = roleServices(parts, parts.config.publicUrl ?? port.url)
  const { log, tables, history, files, clock, logger, metrics, feeds, projections, config } = services
  const health = new EngineHealth({ engines: { log, tables, history, files }, metrics, clock })
  const roles: Role[] = []
  const stopping = new AbortController()
  const end = async (): Promise<void> => {
    stopping.abort()
    await services.upkeepTurns.close()
    await closeAll([...roles, ...Object.values(feeds), health, metrics], logger)
  }
  try {
    const declared = [LATEST_POSITIONS, LATEST_TRACKERS, ...projections.flatMap(tablesOf)]
    await Promise.all(declared.map((table) => tables.declare(table)))
    const projector = config.roles.includes('projector') ? openProjector : undefined
    const others = OTHER_ROLES.filter(([name]) => config.roles.includes(name)).map(([, open]) => open)
    await openRoles(services, projector, others, roles)
    const lags = () => lagsOf(services, roles)
    const listeners = () => roles.flatMap((role) => role.listeners?.() ?? [])
    const bridges = () => roles.flatMap((role) => role.bridges?.() ?? [])
    metrics.beforeScrape(async () => showLags(services, await lags()))
    let demoLogin: DemoLogin | undefined
    let isReady = false
    void Promise.all(roles.map(({ ready }) => ready)).then(() => (isReady = !stopping.signal.aborted))
    const door = await openDoor(services, port, {
      routes: [
        ...roles.flatMap(({ routes = [] }) => routes),
        ...operationsRoutes({ metrics, health, isReady: () => isReady }),
        ...ownRoutes(services, () => demoLogin, { health, lags, startedAt: clock.now() }),
      ],
      channels: roles.flatMap(({ channels = [] }) => channels),
    })
    return {
      url: port.url,
      showDemoLogin: (login) => {
        demoLogin = login
      },
      control: controlOf(services, {
        rotateTokenKey: parts.rotateTokenKey,
        lags,
        devices: () => ({ listeners: listeners(), bridges: bridges() }),
        health,
        signal: stopping.signal,
      }),
      close: async () => {
        isReady = false
        await drain(services, door, roles)
        await end()
      },
    }
  } catch (error) {
    port.stopListening()
    port.close()
    await end()
    throw error
  }
}

/** Stops accepting, and stores and answers everything accepted. */
const drain = async (
  { owners }: RoleServices,
  door: Awaited<ReturnType<typeof openDoor>>,
  roles: readonly Role[],
): Promise<void> => {
  // Rows of open requests are stored by the next owner.
  owners.leaveAll()
  await door.stopAccepting(CLOSE_REQUESTS_MS)
  await Promise.all(roles.map((role) => role.drain?.()))
  await door.close()
}

/** Lag of every consumer of this process, against its stored checkpoint. */
const lagsOf = async ({ feeds, clock }: RoleServices, roles: readonly Role[]): Promise<Lag[]> => [
  ...(await Promise.all([feeds.locations, feeds.transitions, feeds.runs].map((feed) => feed.lags(clock.now())))).flat(),
  ...roles.flatMap((role) => role.lags?.() ?? []),
]

const showLags = ({ metrics }: RoleServices, lags: readonly Lag[]): void => {
  metrics.consumerLagEvents.reset()
  metrics.consumerLagSeconds.reset()
  for (const { consumer, partition, events, seconds } of lags) {
    metrics.consumerLagEvents.set({ consumer, partition }, events)
    metrics.consumerLagSeconds.set({ consumer, partition }, seconds)
  }
}
