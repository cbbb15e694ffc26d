import { directory } from '../projections/directory.ts'
import { processes } from '../projections/processes.ts'
import { usesRows } from '../projections/uses.ts'
import { auditedNouns } from './features/audit/views.ts'
import type { Process } from './kit/commands/process.ts'
import type { Projection } from './kit/consumers/projection.ts'
import type { ResourceServices } from './kit/resource/declaration.ts'
import { ResourceSet } from './kit/resource/resource-set.ts'
import type { DeletedRecords } from './processes/erase-organization.ts'
import { giveWay } from './processes/give-way.ts'
import { officeOf } from './processes/office.ts'
import { FEATURES } from './product.ts'
import type { Actions } from './reactors/dispatch/actions/action.ts'
import type { NotificationServices } from './reactors/dispatch/actions/notification-channels.ts'
import { sharedReads } from './reactors/dispatch/shared-reads.ts'

const DECLARED = FEATURES.flatMap(({ resources = [] }) => resources)
const OWN_PROJECTIONS = FEATURES.flatMap(({ projections = [] }) => projections)
const KEPT_BY_THEMSELVES = new Set(OWN_PROJECTIONS.flatMap(({ tables }) => tables.map(({ name }) => name)))

export const resources = new ResourceSet(DECLARED)

export const AUDITED = auditedNouns(resources.all())

/** Every read model that is kept in tables and fed by the whole log. */
export const PROJECTIONS: readonly Projection[] = [
  directory([...DECLARED.filter(({ table }) => !KEPT_BY_THEMSELVES.has(table.name)).map(({ rows }) => rows), usesRows]),
  ...OWN_PROJECTIONS,
  processes,
]

/** Every command that writes several streams, as facts that anyone carries on. */
// biome-ignore lint/suspicious/noExplicitAny: each kind has its own data, which only its steps look into
export const processesOf = (services: ResourceServices, deletedRecords: DeletedRecords): Process<any>[] => {
  const deletions = Object.assign({}, ...FEATURES.map((feature) => feature.deletions))
  const keptJobs = FEATURES.flatMap((feature) => feature.keptJobs ?? [])
  const parts = { office: officeOf(services), services, deletedRecords, deletions, keptJobs }
  return [...FEATURES.flatMap((feature) => feature.processes?.(parts) ?? []), giveWay(services)]
}

/** Actions of automations, by `automationType`. */
export const actionsOf = (given: NotificationServices): Actions => {
  const services = { ...given, tables: sharedReads(given.tables) }
  return Object.assign({}, ...FEATURES.map((feature) => feature.actions?.(services)))
}
