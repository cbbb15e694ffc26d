import type { TableDeclaration } from '../../kernel/table.ts'
import type { Route } from '../http/route.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import { resourceRoutes } from './routes.ts'
import type { RouteParts } from './served.ts'
import { rowSource, tableOf, type RowSource } from './rows.ts'
import { ResourceWriter } from './write.ts'

export interface Resource {
  declaration: ResourceDeclaration
  table: TableDeclaration
  /** Keeps the table: a part of the projection `directory`. */
  rows: RowSource
  writer(services: ResourceServices): ResourceWriter
  /** Routes of its verbs, of its actions, and of a new key. */
  routes(services: ResourceServices, parts?: RouteParts): Route[]
}

/**
 * One declaration makes the events, the table and the routes of a resource ("Adding a resource" in
 * docs/architecture.md). Features supply the rest: own writes, own rows (`rows` gets the kit's).
 */
export const defineResource = (
  declaration: ResourceDeclaration,
  rows: (plain: RowSource) => RowSource = (plain) => plain,
): Resource => ({
  declaration,
  table: tableOf(declaration),
  rows: rows(rowSource(declaration)),
  writer: (services) => new ResourceWriter(declaration, services),
  routes: (services, parts) => resourceRoutes(declaration, services, parts),
})
