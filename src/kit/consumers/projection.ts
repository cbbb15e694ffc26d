import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { WORDS_VERSION } from '../../kernel/words.ts'

/** Rows as a projection sees them while a batch is applied: reads see the writes of earlier events of the batch. */
export interface Rows {
  get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined>
  /** Rows by one field declared `equality`; some of them, where there are more than `limit`. */
  findBy<R extends Row>(
    table: string,
    scope: string,
    field: string,
    value: string,
    limit?: number,
  ): Promise<{ id: string; row: R }[]>
  put(table: string, scope: string, id: string, row: Row, expiresAt?: number): void
  delete(table: string, scope: string, id: string): void
}

/** Events in, rows out. No clock, no network, no commands; the same events give the same rows, also when applied twice. */
export interface Projection extends ProjectionPart {
  /** Its parts, where each is built by itself. */
  parts?: readonly ProjectionPart[]
}

/** Tables that are built together; it reads no tables but its own. */
export interface ProjectionPart {
  name: string
  /** Raise it when the shape of rows changes: the tables are then rebuilt beside the live ones and swapped. */
  version: number
  tables: readonly TableDeclaration[]
  /** Categories of streams that it reads, with the dash, such as `hub-`. */
  prefixes: readonly string[]
  /** Types of the events that can change a row; a write waits for the projections that list its events here. */
  inputs: readonly string[]
  /**
   * Every event of its streams is an input, but only events in the log when the tables are new or were lost: it does
   * not follow the log after that, and nobody waits for it.
   */
  isBuiltOnce?: boolean
  apply(event: RecordedEvent, rows: Rows): Promise<void> | void
}

/** Name of the projection with the tables of all declared resources. */
export const DIRECTORY = 'directory'

/** One projection of several parts, with one position in the log. A part of another version is rebuilt by itself. */
export const joinParts = (name: string, parts: readonly ProjectionPart[]): Projection => {
  const byType = new Map<string, ProjectionPart[]>()
  for (const part of parts) for (const type of part.inputs) byType.set(type, [...(byType.get(type) ?? []), part])
  const tables = parts.flatMap((part) => part.tables)
  const twice = tables.find((table, i) => tables.findIndex((other) => other.name === table.name) < i)
  if (twice !== undefined) throw new Error(`the table ${twice.name} belongs to two parts of ${name}`)
  return {
    name,
    version: 1,
    parts,
    tables,
    prefixes: [...new Set(parts.flatMap(({ prefixes }) => prefixes))],
    inputs: [...byType.keys()],
    apply: async (event, rows) => {
      for (const part of byType.get(event.type) ?? []) await part.apply(event, rows)
    },
  }
}

export const tablesOf = ({ tables }: Pick<Projection, 'tables'>): TableDeclaration[] =>
  tables.map((table) => ({ ...table, isProjected: true }))

/** Versions of the stored parts, beside the position in a projection's checkpoint. */
export const versionsOf = (projection: Projection): { [source: string]: number } =>
  projection.parts === undefined
    ? { version: storedVersion(projection) }
    : Object.fromEntries(projection.parts.map((part) => [`version:${part.name}`, storedVersion(part)]))

/** Also rises with the version of word splitting, for tables that are searched by words. */
const storedVersion = ({ version, tables }: ProjectionPart): number =>
  tables.some(({ text = [] }) => text.length > 0) ? version + WORDS_VERSION : version

/** The projection without the parts whose stored version is current; undefined when all are. */
export const staleParts = (projection: Projection, stored: { [source: string]: number }): Projection | undefined => {
  const { name, parts } = projection
  if (parts === undefined) return stored.version === storedVersion(projection) ? undefined : projection
  const stale = parts.filter((part) => stored[`version:${part.name}`] !== storedVersion(part))
  return stale.length === 0 ? undefined : { ...joinParts(name, stale), parts }
}

export interface ProjectionServices {
  log: EventLog
  tables: TableStore
  clock: Clock
  logger: Logger
}
