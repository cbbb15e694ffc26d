import { join } from 'node:path'
import type { Test } from 'tap'
import { exampleVariables, roleEnvironments } from './compose-file.ts'
import { ENGINES, type EngineServers, startEngines } from './engine-servers.ts'
import { freePort } from './free-port.ts'
import { openS3OfTest } from './s3-server.ts'
import { type Service, startService } from './service.ts'
import { TcpProxy } from './tcp-proxy.ts'

/** The processes of the profile `roles`, by their names in docker-compose.yml, on engines of the tests. */
export interface RoleProcesses {
  /** Those that run. */
  running: Map<string, Service>
  servers: EngineServers['servers']
  /** What the processes that were named as `apart` reach each engine through. */
  ways: Map<string, TcpProxy[]>
  /** Starts the one of that name, at the port that it had. */
  start(name: string): Promise<Service>
  /** The one that runs under this name. @throws Error when it does not */
  get(name: string): Service
}

/** What each may read of its metrics, from this machine too. */
export const METRICS_TOKEN = exampleVariables.METRICS_TOKEN

/**
 * Starts all of them at once, with the environment that docker-compose.yml gives them; they end with the test.
 * @param apart names of those that reach the engines on ways of their own
 */
export const openRoleProcesses = async (
  t: Test,
  folder: string,
  apart: readonly string[] = [],
): Promise<RoleProcesses> => {
  const { flags, servers } = await startEngines(t, folder)
  const ways = new Map<string, TcpProxy[]>()
  for (const name of apart)
    ways.set(name, await Promise.all(ENGINES.map((engine) => TcpProxy.open(servers[engine].proxy.port))))
  const files = await openS3OfTest(t)
  const [, log, , tables, , history] = flags
  const own = {
    WAYMARK_LOG: log,
    WAYMARK_TABLES: tables,
    WAYMARK_HISTORY: history,
    WAYMARK_FILES: files.url,
    ...files.environment,
    WAYMARK_KEYS: join(folder, 'keys.json'),
    WAYMARK_SIGNUP: 'open',
  }
  const environments = roleEnvironments()
  const running = new Map<string, Service>()
  const ports = new Map<string, number>()
  t.teardown(async () => {
    await Promise.all([...running.values()].map((service) => service.kill()))
    await Promise.all([...ways.values()].flat().map((way) => way.close()))
  })
  /** The same engines, at the ports of its own ways. */
  const reached = (name: string): { [variable: string]: string } =>
    Object.fromEntries(
      Object.entries(own).map(([variable, value]) => {
        const at = ENGINES.findIndex((engine) => value.includes(`127.0.0.1:${servers[engine].proxy.port}`))
        const way = ways.get(name)?.[at]
        return [
          variable,
          way === undefined ? value : value.replace(`:${servers[ENGINES[at]].proxy.port}`, `:${way.port}`),
        ]
      }),
    )
  const start = async (name: string): Promise<Service> => {
    const environment = { ...environments[name], ...reached(name) }
    const data = join(folder, name)
    const port = ports.get(name) ?? (await freePort())
    ports.set(name, port)
    const service = await startService(data, [], port, undefined, undefined, environment)
    running.set(name, service)
    return service
  }
  await Promise.all(Object.keys(environments).map(start))
  return {
    running,
    servers,
    ways,
    start,
    get: (name) => {
      const service = running.get(name)
      if (service === undefined) throw new Error(`no process is called ${name}`)
      return service
    },
  }
}
