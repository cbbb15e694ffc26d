import { createHash } from 'node:crypto'
import type { RecordedEvent } from '../src/kernel/event.ts'
import type { Projection, Rows } from '../src/kit/consumers/projection.ts'

/** The part of the directory that keeps the rows of one kind of thing. */
export type DirectoryPart = Pick<Projection, 'tables' | 'prefixes' | 'inputs' | 'apply'>

/** The tables of all declared resources, as one projection. A part that is added or changes its tables has it built anew. */
export const directory = (parts: readonly DirectoryPart[]): Projection => {
  const byType = new Map<string, DirectoryPart[]>()
  for (const part of parts) for (const type of part.inputs) byType.set(type, [...(byType.get(type) ?? []), part])
  return {
    name: 'directory',
    version: versionOf(parts),
    tables: parts.flatMap(({ tables }) => tables),
    prefixes: [...new Set(parts.flatMap(({ prefixes }) => prefixes))],
    inputs: [...byType.keys()],
    apply: async (event: RecordedEvent, rows: Rows) => {
      for (const part of byType.get(event.type) ?? []) await part.apply(event, rows)
    },
  }
}

const versionOf = (parts: readonly DirectoryPart[]): number => {
  const names = parts.flatMap(({ tables }) => tables.map(({ name, version }) => `${name}:${version}`)).sort()
  return createHash('sha256').update(names.join()).digest().readUInt32BE(0)
}
