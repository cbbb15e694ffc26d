import { DECIDED, type Decided } from '../src/features/transitions/events.ts'
import { tripRow, TRIPS } from '../src/features/trips/views.ts'
import { decodeJson } from '../src/kernel/event.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'

/** Trips from their start on, kept as long as history. It is fed by points, so no write of a client waits for it. */
export const trips = (retentionMs: number): Projection => ({
  name: 'trips',
  version: 1,
  tables: [TRIPS],
  prefixes: ['transitions-'],
  inputs: [DECIDED],
  apply: (event, rows) => {
    if (event.type !== DECIDED) return
    for (const decision of decodeJson<Decided>(event.data).decisions) {
      if (decision.kind === 'transition') continue
      const expiresAt = (decision.finishedAt ?? decision.startedAt) + retentionMs
      rows.put(TRIPS.name, decision.organizationId, decision._id, tripRow(decision), expiresAt)
    }
  },
})
