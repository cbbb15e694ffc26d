import { createHash } from 'node:crypto'
import { DIRECTORY, joinParts, type Projection } from '../src/kit/consumers/projection.ts'
import type { TableDeclaration } from '../src/kernel/table.ts'

/** The part of the directory with the rows of one kind of record. */
export type DirectoryPart = Pick<Projection, 'tables' | 'prefixes' | 'inputs' | 'apply'>

/**
 * The tables of all declared resources, as one projection, so that the log is read once for them. Each part is named by
 * its first table; a new one, or one whose tables change, is rebuilt by itself.
 */
export const directory = (parts: readonly DirectoryPart[]): Projection =>
  joinParts(
    DIRECTORY,
    parts.map((part) => ({ ...part, name: part.tables[0].name, version: versionOf(part.tables) })),
  )

const versionOf = (tables: readonly TableDeclaration[]): number =>
  createHash('sha256').update(JSON.stringify(tables)).digest().readUInt32BE(0)
