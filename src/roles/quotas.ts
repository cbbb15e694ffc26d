import { LIMITS, type Limits } from '../config-limits.ts'
import type { TableStore } from '../engines/table-store.ts'
import { AUTOMATIONS } from '../features/automations/views.ts'
import { RECORDS } from '../features/data/views.ts'
import type { Clock } from '../kernel/clock.ts'
import { DIRECTORY } from '../kit/consumers/projection.ts'
import { Quotas } from '../kit/quotas/quotas.ts'
import { automations } from '../../projections/automations.ts'
import { NO_SUMS } from '../kit/quotas/uses.ts'

/** Limits whose table has another name. */
const TABLES: { [limit: string]: string } = { records: RECORDS }

export const quotasOf = (
  services: { tables: Pick<TableStore, 'find' | 'get' | 'checkpoint'>; clock: Clock },
  limits: Limits,
): Quotas =>
  new Quotas(
    services,
    LIMITS.map(({ name, thing }) => ({
      name,
      thing,
      max: limits[name],
      ...(!Object.hasOwn(NO_SUMS, name) && { table: TABLES[name] ?? name }),
      consumer: name === AUTOMATIONS.name ? automations.name : DIRECTORY,
    })),
  )
