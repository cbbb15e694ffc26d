import { EXPORT, EXPORTS } from '../src/features/exports/views.ts'
import { jobRows } from '../src/kit/jobs/rows.ts'

/** Every export until it is deleted. */
export const exportRows = jobRows(EXPORT, EXPORTS)
