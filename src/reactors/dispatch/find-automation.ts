import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { automation } from '../../features/automations/automation.ts'
import { automationStream } from '../../features/automations/events.ts'
import { AUTOMATIONS, type AutomationRow } from '../../features/automations/views.ts'
import { loadState } from '../../kit/commands/handle-command.ts'

export interface FindOptions {
  log: EventLog
  tables: TableStore
}

/** An automation as it is now. Where the table has none, its stream decides: a table that is being made anew must not end runs. */
export const findAutomation = async (
  { log, tables }: FindOptions,
  organizationId: string,
  automationId: string,
): Promise<AutomationRow | undefined> =>
  (await tables.get<AutomationRow>(AUTOMATIONS.name, organizationId, automationId)) ??
  (await loadState(log, automationStream(automationId), automation)).state.row
