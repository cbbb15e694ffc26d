import type { Config } from '../config.ts'
import { identityContext, type IdentityContext } from '../features/identity/context.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { listProcesses } from '../processes/list.ts'
import { ProcessRunner } from '../processes/runner.ts'
import { hub } from '../features/hubs/hub.ts'
import { team } from '../features/teams/team.ts'
import { resources } from './resources.ts'

/** What runs the commands that write several streams; what an earlier life left open is carried on from here on. */
export const openProcesses = (
  config: Config,
  services: Services,
  metrics: Metrics,
): { identity: IdentityContext; close(): Promise<void> } => {
  const processes = new ProcessRunner(services)
  const these = { ...services, resources, processes }
  const identity = identityContext(these, config)
  processes.start(listProcesses({ ...identity, log: services.log, hubs: hub.writer(these), teams: team.writer(these) }))
  metrics.beforeScrape(() => metrics.processesStuck.set(processes.stuck))
  return { identity, close: () => processes.close() }
}
