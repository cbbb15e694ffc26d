import { importUndos, imports as projection } from '../../../projections/imports.ts'
import type { Feature } from '../../feature.ts'
import { JobPlaces } from '../../kit/jobs/asking.ts'
import { importWork } from '../../reactors/imports/run-import.ts'
import { undoWork } from '../../reactors/imports/undo-import.ts'
import { importRoutes } from './api.ts'
import { IMPORT_EXAMPLE, IMPORT_SCHEMA } from './schemas.ts'
import {
  IMPORT,
  IMPORT_BOUNDS,
  IMPORT_FILES,
  IMPORT_UNDO,
  IMPORT_UNDOS,
  IMPORT_VIEW,
  IMPORTS,
  UNDO_BOUNDS,
} from './views.ts'

export const imports: Feature = {
  projections: [projection, importUndos],
  routes: (services) =>
    importRoutes({
      ...services,
      bytesMax: services.config.importBytesMax,
      places: new JobPlaces(services.tables, IMPORT_BOUNDS),
      undoPlaces: new JobPlaces(services.tables, UNDO_BOUNDS),
    }),
  works: (services) => [importWork(services), undoWork(services)],
  jobViews: [IMPORT_VIEW],
  keptJobs: [
    { kind: IMPORT, table: IMPORTS },
    { kind: IMPORT_UNDO, table: IMPORT_UNDOS },
  ],
  liveEvents: [
    {
      channel: 'job',
      description: 'An import, each time that it goes on, for users who may read it.',
      schema: IMPORT_SCHEMA,
      examples: [IMPORT_EXAMPLE],
    },
  ],
  fileOwners: ({ tables }) => [
    {
      prefix: IMPORT_FILES,
      isNamed: async (key) => {
        const [, organizationId, name] = key.split('/')
        if (name.endsWith('-report'))
          return (await tables.get(IMPORTS.name, organizationId, name.slice(0, -'-report'.length))) !== undefined
        const { rows } = await tables.find(IMPORTS.name, organizationId, { where: { upload: key }, limit: 1 })
        return rows.length > 0
      },
    },
  ],
}
