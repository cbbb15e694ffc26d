import { ROUTING, ROUTINGS } from '../src/features/routing/views.ts'
import { jobRows } from '../src/kit/jobs/rows.ts'

/** Every planning of routes, until it expires. */
export const routings = jobRows(ROUTING, ROUTINGS)
