import { exportRows } from '../../../projections/exports.ts'
import type { Feature } from '../../feature.ts'
import type { Route } from '../../kit/http/route.ts'
import { JobPlaces } from '../../kit/jobs/asking.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { ownedPart } from '../../kit/consumers/owners.ts'
import { SCHEDULED_EXPORTS, ScheduledExports } from '../../reactors/exports/scheduled-exports.ts'
import { callerNow } from '../../reactors/callers/caller-now.ts'
import { exportWork } from '../../reactors/exports/run-export.ts'
import { recordReads } from '../data/read-records.ts'
import { taskConditions } from '../tasks/conditions.ts'
import { task } from '../tasks/task.ts'
import { exportRoutes } from './api.ts'
import { ConfigWrites } from './config-writes.ts'
import { exportConfig } from './export-config.ts'
import { EXPORT_EXAMPLE, EXPORT_SCHEMA } from './schemas.ts'
import type { ExportSources } from './question.ts'
import { EXPORT, EXPORT_BOUNDS, EXPORT_FILES, EXPORT_VIEW, EXPORTS } from './views.ts'
import { ListWalker } from './walk.ts'

/** Most rows of a file that is answered directly. */
const DIRECT_MAX = 5_000

export const exporting: Feature = {
  resources: [exportConfig],
  projections: [exportRows],
  routes: (services) => {
    const sources = sourcesOf(services)
    const places = new JobPlaces(services.tables, EXPORT_BOUNDS)
    return [
      ...exportConfig.routes(services, { writes: new ConfigWrites(services, sources) }),
      ...exportRoutes({ ...services, ...sources, places, directMax: DIRECT_MAX, callerNow }),
    ]
  },
  works: (services) => [exportWork({ ...services, ...sourcesOf(services) })],
  jobs: (services) => [
    ownedPart(SCHEDULED_EXPORTS, async () => new ScheduledExports({ ...services, ...sourcesOf(services) }).start()),
  ],
  jobViews: [EXPORT_VIEW],
  keptJobs: [{ kind: EXPORT, table: EXPORTS }],
  liveEvents: [
    {
      channel: 'job',
      description: 'An export that is a job, each time that it goes on, for the user who asked for it.',
      schema: EXPORT_SCHEMA,
      examples: [EXPORT_EXAMPLE],
    },
  ],
  fileOwners: ({ tables }) => [
    {
      prefix: EXPORT_FILES,
      isNamed: async (key) => {
        const [, organizationId, file] = key.split('/')
        const [id] = file.split('.')
        return (await tables.get(EXPORTS.name, organizationId, id)) !== undefined
      },
    },
  ],
}

/** The exported lists: exports show nothing that they hide. */
const sourcesOf = (services: ResourceServices): ExportSources => {
  const tasks = task.routes(services, { conditions: taskConditions(services) })
  return {
    tables: services.tables,
    taskMembers: listShape(task.declaration).members,
    lists: { data: walker(recordReads(services), 'listData'), task: walker(tasks, 'listTasks') },
  }
}

const walker = (routes: readonly Route[], operationId: string): ListWalker =>
  new ListWalker(routes.find((one) => one.operationId === operationId) as Route)
