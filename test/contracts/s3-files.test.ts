import { openS3OfTest } from '../support/s3-server.ts'
import { fileStoreContract } from './file-store.ts'

fileStoreContract('s3-files', { open: openS3OfTest })
