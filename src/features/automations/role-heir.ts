import { isObject, type Json } from '../../kernel/json.ts'
import { Failure } from '../../kernel/errors.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import type { StepOrigin } from '../../kit/commands/process.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { automation, type AutomationCommand, type AutomationState } from './automation.ts'
import { automationStream } from './events.ts'
import { openDetails, sealDetails } from './sealed.ts'

/** Makes an automation tell the users of `heir` instead of those of a role that is deleted. Repeating it changes nothing. */
export const tellHeir = async (
  { log, keyring }: Pick<ResourceServices, 'log' | 'keyring'>,
  { organizationId, ids, metadata, now }: StepOrigin,
  automationId: string,
  roleId: string,
  heir: string,
): Promise<Wrote | undefined> => {
  const prepare = async ({ row }: AutomationState): Promise<AutomationCommand> => {
    if (row?.organizationId !== organizationId) throw new Failure('not_found')
    const { name, event, dataType, automationType, rules, isActive, names, editorId } = row
    const isTold = names?.roles?.includes(roleId) === true
    const details = isTold ? sealDetails(keyring, told(openDetails(keyring, row), roleId, heir)) : row.details
    const roles = isTold ? unique(names.roles?.map((one) => (one === roleId ? heir : one)) ?? []) : names?.roles
    const content = { name, event, dataType, automationType, details, rules, isActive }
    const named = names === undefined ? {} : { names: { ...names, ...(roles !== undefined && { roles }) } }
    // Its editor stays the one whose sight bounds it.
    return { type: 'change', data: { content: { ...content, ...named }, editorId, at: now } }
  }
  return (await handleCommand(log, automationStream(automationId), automation, prepare, { ids, metadata })).wrote
}

const told = ({ to, ...details }: { [name: string]: Json }, roleId: string, heir: string) => {
  const isRole = (one: Json, id: string): boolean => isObject(one) && one.roleId === id
  if (!Array.isArray(to)) return { ...details, to: isRole(to, roleId) ? { roleId: heir } : to }
  const isKnown = to.some((one) => isRole(one, heir))
  return {
    ...details,
    to: to.flatMap((one) => (!isRole(one, roleId) ? [one] : isKnown ? [] : [{ roleId: heir }])),
  }
}

const unique = (ids: readonly string[]): string[] => [...new Set(ids)]
