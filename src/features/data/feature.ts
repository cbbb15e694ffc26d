import type { Feature } from '../../feature.ts'
import { writeRecordAction } from '../../reactors/dispatch/actions/write-record.ts'
import { CHECK_RECORDS, checkRecords } from '../../reactors/records/check-records.ts'
import { dataRoutes } from './api.ts'
import { dataType } from './data-type.ts'
import { recordFiles } from './record-files.ts'
import { RecordWriter } from './record-writer.ts'
import { record } from './record.ts'
import { readRecord, RECORDS } from './views.ts'

export const data: Feature = {
  resources: [dataType, record],
  routes: dataRoutes,
  attachments: (services) => recordFiles(services, new RecordWriter(services)),
  audited: { [RECORDS]: ({ tables }, caller, values) => readRecord(tables, caller, values) },
  jobs: ({ follows, ...services }) => [follows(CHECK_RECORDS, (isOurs) => checkRecords({ ...services, isOurs }))],
  actions: (services) => ({ createOrUpdateDataSource: writeRecordAction(services) }),
}
