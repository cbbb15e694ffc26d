import { isDeepStrictEqual } from 'node:util'
import type { EventLog } from '../../engines/event-log.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure, taken } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { idSource } from '../../kit/commands/ids.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import {
  AUTOMATION_CHANGED,
  AUTOMATION_CREATED,
  AUTOMATION_DEACTIVATED,
  AUTOMATION_DELETED,
  AUTOMATION_SECRET_ROTATED,
  automationStream,
  RUN_RETRY_ASKED,
  type AutomationChanged,
  type AutomationCreated,
  type AutomationDeactivated,
  type AutomationDeleted,
  type AutomationSecretRotated,
  type RunRetryAsked,
} from './events.ts'
import { evolveRow, type AutomationRow, type RunRow } from './views.ts'

export interface AutomationState {
  /** Absent before its creation and after its deletion. */
  row: AutomationRow | undefined
  /** Content of the create, to recognise its repetition; it outlives a deletion. */
  first: AutomationCreated | undefined
}

export type AutomationCommand =
  | { type: 'create'; data: AutomationCreated }
  | { type: 'change'; data: AutomationChanged }
  | { type: 'rotateSecret'; data: AutomationSecretRotated }
  | { type: 'deactivate'; data: AutomationDeactivated; details: string }
  | { type: 'retryRun'; data: RunRetryAsked }
  | { type: 'delete'; data: AutomationDeleted }

/** Life of one automation. Its content is checked before, in check-automation.ts, because that needs other records. */
export const automation: Decider<AutomationState, AutomationCommand> = {
  initial: { row: undefined, first: undefined },
  decide: (command, { row, first }): Fact[] => {
    if (command.type === 'create') {
      if (first === undefined) return [{ type: AUTOMATION_CREATED, data: command.data }]
      const { organizationId, content } = command.data
      if (row?.organizationId === organizationId && isDeepStrictEqual(content, first.content)) return []
      throw taken('/_id', 'conflict')
    }
    if (row === undefined) throw new Failure('not_found')
    if (command.type === 'change' && isUnchanged(row, command.data)) return []
    if (command.type === 'deactivate') {
      const isMeant = row.isActive && row.details === command.details
      return isMeant ? [{ type: AUTOMATION_DEACTIVATED, data: command.data }] : []
    }
    return [{ type: TYPES[command.type], data: command.data }]
  },
  evolve: ({ row, first }, fact) => ({
    row: evolveRow(row, fact),
    first: fact.type === AUTOMATION_CREATED ? (fact.data as AutomationCreated) : first,
  }),
}

const TYPES = {
  change: AUTOMATION_CHANGED,
  rotateSecret: AUTOMATION_SECRET_ROTATED,
  retryRun: RUN_RETRY_ASKED,
  delete: AUTOMATION_DELETED,
} as const

const isUnchanged = (row: AutomationRow, { content, editorId }: AutomationChanged): boolean =>
  row.editorId === editorId && Object.entries(content).every(([name, value]) => isDeepStrictEqual(value, row[name]))

/**
 * Deactivates an automation in the name of the service, unless its action was changed since `row` was read. Returns
 * whether it is now inactive or gone.
 */
export const deactivateAutomation = async (
  { log, clock }: { log: EventLog; clock: Clock },
  { _id, organizationId, details }: Pick<AutomationRow, '_id' | 'organizationId' | 'details'>,
  reason: AutomationDeactivated['reason'],
): Promise<boolean> => {
  const at = clock.now()
  const context = { ids: idSource(at), metadata: { organizationId, actor: 'reactor:dispatch' } }
  try {
    const command = { type: 'deactivate', data: { reason, at }, details } as const
    const { state } = await handleCommand(log, automationStream(_id), automation, command, context)
    return state.row?.isActive !== true
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return true
    throw error
  }
}

/** Requests another attempt of an ended run. @throws Failure not_found, conflict if the automation is not active. */
export const askRetry = async (
  log: EventLog,
  { organizationId, ids, metadata, now }: WriteOrigin,
  run: RunRow,
): Promise<Wrote | undefined> => {
  const { _id: runId, automationId, partition, sequence, trigger, createdAt: owedAt } = run
  const failures = run.attempts.at(-1)?.failures ?? 0
  const data = { runId, partition, at: now, run: { sequence, failures, trigger, owedAt } }
  const prepare = async ({ row }: AutomationState): Promise<AutomationCommand> => {
    if (row?.organizationId !== organizationId) throw new Failure('not_found')
    if (run.status === 'pending')
      throw new Failure('conflict', { message: 'The run has not ended: it will be attempted anyway.' })
    if (!row.isActive) throw new Failure('conflict', { message: 'The automation is not active; activate it first.' })
    return { type: 'retryRun', data }
  }
  return (await handleCommand(log, automationStream(automationId), automation, prepare, { ids, metadata })).wrote
}
