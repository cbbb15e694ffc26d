import type { Config } from '../config.ts'
import type { Projection } from '../kit/consumers/projection.ts'
import { access } from '../../projections/access.ts'
import { automationRuns } from '../../projections/automation-runs.ts'
import { automations } from '../../projections/automations.ts'
import { backtests } from '../../projections/backtests.ts'
import { directory } from '../../projections/directory.ts'
import { processes } from '../../projections/processes.ts'
import { DIRECTORY } from './resources.ts'

/** Every read model that is kept in tables and fed by the whole log. */
export const listProjections = ({ automationLogDays }: Pick<Config, 'automationLogDays'>): Projection[] => [
  directory(DIRECTORY.map(({ rows }) => rows)),
  access,
  automations,
  automationRuns(automationLogDays),
  backtests,
  processes,
]
