import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import { amendRoute, createRoute, deleteRoute, listRoute, readRoute, replaceRoute } from './routes.ts'
import { rowSource, tableOf, type RowSource } from './rows.ts'
import { ResourceWriter } from './write.ts'
import type { Route } from '../http/route.ts'
import type { TableDeclaration } from '../../kernel/table.ts'

export interface Resource {
  declaration: ResourceDeclaration
  table: TableDeclaration
  /** Keeps the table: a part of the projection `directory`. */
  rows: RowSource
  writer(services: ResourceServices): ResourceWriter
  /** List, read, create, replace, amend and delete. */
  routes(services: ResourceServices): Route[]
}

/**
 * One declaration makes the events, the table and the six routes of a plain resource. Where it needs a special case
 * that no hook of the declaration has, take the parts (`listRoute`, `readRoute`, `ResourceWriter`, …) and write the rest by hand.
 */
export const defineResource = (declaration: ResourceDeclaration): Resource => ({
  declaration,
  table: tableOf(declaration),
  rows: rowSource(declaration),
  writer: (services) => new ResourceWriter(declaration, services),
  routes: (services) => {
    const writer = new ResourceWriter(declaration, services)
    return [
      listRoute(declaration, services),
      readRoute(declaration, services),
      createRoute(declaration, writer),
      replaceRoute(declaration, writer),
      amendRoute(declaration, writer),
      deleteRoute(declaration, writer),
    ]
  },
})
