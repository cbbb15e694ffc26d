import type { Logger } from '../../kernel/logger.ts'
import type { HealthTable } from './health-table.ts'
import { HEALTHY } from './receiver-health.ts'
import type { Sender } from './sender.ts'

export interface EndOptions {
  logger: Logger
  health: HealthTable
  /** Deactivates an automation whose receiver is gone or has failed for days. */
  deactivate: (organizationId: string, automationId: string, reason: 'gone' | 'failing') => Promise<void>
}

/** Deactivates an automation and skips what it has left; where that fails, its next failure tries again. */
export const endAutomation = async (
  options: EndOptions,
  sender: Sender,
  reason: 'gone' | 'failing',
  skip: () => Promise<void>,
): Promise<void> => {
  const { organizationId, automationId } = sender
  try {
    await options.deactivate(organizationId, automationId, reason)
    options.logger.warn('automation deactivated', { organizationId, automationId, reason })
    sender.health = HEALTHY
    options.health.put(automationId, HEALTHY)
    await skip()
  } catch (error) {
    options.logger.error('automation not deactivated', { automationId, error: String(error) })
  }
}

/** Nothing of the automation is begun while this work lasts. */
export const held = async (sender: Sender, work: () => Promise<void>): Promise<void> => {
  sender.isSkipping = true
  try {
    await work()
  } finally {
    sender.isSkipping = false
  }
}
