import { Failure } from '../../kernel/errors.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import type { StepOrigin } from '../../kit/commands/process.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Details } from './action-type.ts'
import { automation, type AutomationCommand, type AutomationState } from './automation.ts'
import { automationStream, type Names } from './events.ts'
import { openDetails, sealDetails } from './sealed.ts'

/** `details` answers the same object where nothing changes. */
export interface DetailsEdit {
  details(details: Details): Details
  names(names: Names): Names
}

/**
 * Edits whom an automation names in its details, on behalf of the service. It keeps its editor, whose sight bounds it.
 *
 * @throws Failure not_found
 */
export const editDetails = async (
  { log, keyring }: Pick<ResourceServices, 'log' | 'keyring'>,
  { organizationId, ids, metadata, now }: Pick<StepOrigin, 'organizationId' | 'ids' | 'metadata' | 'now'>,
  automationId: string,
  edit: DetailsEdit,
): Promise<Wrote | undefined> => {
  const prepare = async ({ row }: AutomationState): Promise<AutomationCommand> => {
    if (row?.organizationId !== organizationId) throw new Failure('not_found')
    const { name, event, dataType, automationType, rules, isActive, editorId } = row
    const opened = openDetails(keyring, row)
    const edited = edit.details(opened)
    const details = edited === opened ? row.details : sealDetails(keyring, edited)
    const names = row.names === undefined ? {} : { names: edit.names(row.names) }
    const content = { name, event, dataType, automationType, details, rules, isActive, ...names }
    return { type: 'change', data: { content, editorId, at: now } }
  }
  return (await handleCommand(log, automationStream(automationId), automation, prepare, { ids, metadata })).wrote
}
