import type { Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { listProcesses } from '../processes/list.ts'
import type { ProcessRunner } from '../processes/runner.ts'
import { resources } from './resources.ts'

/** From here on commands that write several streams can run, and what an earlier life left open is carried on. */
export const openProcesses = (services: Services & { processes: ProcessRunner }, metrics: Metrics) => {
  const { processes } = services
  processes.start(listProcesses({ ...services, resources }))
  metrics.beforeScrape(() => metrics.processesStuck.set(processes.stuck))
  return processes
}
