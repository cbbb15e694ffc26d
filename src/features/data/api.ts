import type { Uploads } from '../../kit/files/uploads.ts'
import type { Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { recordBulkRoute } from './bulk-api.ts'
import { dataType } from './data-type.ts'
import { recordReads } from './read-records.ts'
import { recordUploadRoute } from './record-files.ts'
import { RecordWriter } from './record-writer.ts'
import { record } from './record.ts'
import { readRecord } from './views.ts'

export const dataRoutes = (services: ResourceServices & { uploads: Uploads }): Route[] => [
  ...dataType.routes(services),
  ...recordReads(services),
  recordBulkRoute(services),
  recordUploadRoute(services, new RecordWriter(services), services.uploads),
  ...record.routes(services, {
    writes: new RecordWriter(services),
    present: async (rows, { caller }) => Promise.all(rows.map((row) => readRecord(services.tables, caller, row))),
  }),
]
