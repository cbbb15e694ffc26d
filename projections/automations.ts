import {
  AUTOMATION_CHANGED,
  AUTOMATION_CREATED,
  AUTOMATION_DEACTIVATED,
  AUTOMATION_DELETED,
  AUTOMATION_PREFIXES,
  AUTOMATION_SECRET_ROTATED,
  RUN_RETRY_ASKED,
  type AutomationCreated,
  type AutomationDeleted,
} from '../src/features/automations/events.ts'
import { AUTOMATIONS, evolveRow, type AutomationRow } from '../src/features/automations/views.ts'
import { factOf } from '../src/kernel/event.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'

/** The automations of each organization, as reads and the dispatcher see them. */
export const automations: Projection = {
  name: 'automations',
  version: 3,
  tables: [AUTOMATIONS],
  prefixes: AUTOMATION_PREFIXES,
  inputs: [
    AUTOMATION_CREATED,
    AUTOMATION_CHANGED,
    AUTOMATION_SECRET_ROTATED,
    AUTOMATION_DEACTIVATED,
    AUTOMATION_DELETED,
    RUN_RETRY_ASKED,
  ],
  apply: async (event, rows) => {
    if (!automations.inputs.includes(event.type)) return
    const fact = factOf(event)
    const organizationId =
      event.metadata.organizationId ?? (fact.data as AutomationCreated | AutomationDeleted).organizationId
    const automationId = event.stream.slice(event.stream.indexOf('-') + 1)
    const row = await rows.get<AutomationRow>(AUTOMATIONS.name, organizationId, automationId)
    if (row !== undefined && row.version > event.revision) return
    const next = evolveRow(row, fact, event.position)
    if (next === undefined) rows.delete(AUTOMATIONS.name, organizationId, automationId)
    else rows.put(AUTOMATIONS.name, organizationId, automationId, next)
  },
}
