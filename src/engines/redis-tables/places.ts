import { type Checkpoint, ID_BYTES_MAX, isRowId } from '../table-store.ts'
import type { TableDeclaration } from '../../kernel/table.ts'

export interface KnownTable {
  declaration: TableDeclaration
  /** Part of its keys; a new one means another, empty table. */
  generation: string
  /** Its rows are lost and wait to be built: it may be written and not read. */
  isLost: boolean
  /** Another version of Waymark has declared it since, with rows of another shape. */
  isForeign: boolean
  indexes: readonly string[]
}

/** Names of keys. The part in braces decides the node of a cluster on which a key lives. */
export class Places {
  /** Everything stored now belongs to it; checkpoints of another one do not count. Empty before it is known. */
  epoch = ''
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
  }

  ofScope({ declaration }: KnownTable, scope: string): string {
    return declaration.lives === 'partition' ? this.ofConsumer(scope) : `${this.prefix}:{o:${scope}}`
  }

  ofConsumer(consumer: string): string {
    return `${this.prefix}:{p:${consumer}}:${this.epoch}`
  }

  /** The key of a row that lives by itself. */
  ofRow({ generation }: KnownTable, scope: string, id: string): string {
    return `${this.prefix}:{r:${generation}:${scope}:${id}}`
  }

  rowsPattern(generation: string): string {
    return `${this.prefix}:{r:${generation}:*`
  }

  ofCounter(scope: string, id: string): string {
    return `${this.prefix}:{n:${scope}:${id}}`
  }

  /** Scopes of which a table has, or had, rows. */
  scopesOf(generation: string): string {
    return `${this.prefix}:{g:${generation}}:scopes`
  }

  get registry(): string {
    return `${this.prefix}:{tables}`
  }

  /** A key with the epoch of the server that holds it. */
  mark(id: string): string {
    return `${this.prefix}:{mark-${id}}`
  }

  get all(): string {
    return `${this.prefix}:{*`
  }

  /** The generation or epoch that a key belongs to, where it belongs to one. */
  generationIn(key: string): string | undefined {
    return /^[^{]*\{(?:g:([0-9a-f]+)\}|[op]:.*?\}:([0-9a-f]{12,}))/s
      .exec(key)
      ?.slice(1)
      .find((name) => name !== undefined)
  }
}

/** Placeholder, for a while, in place of the last change of a replaced table. */
export const ENDED = '#ended'

/** The requested table has ended; its successor is not known here yet. */
export class TableEnded extends Error {}

/** Keys of a place that its commits and reads touch, for any table. */
export const placeKeys = (place: string): string[] => [place, `${place}:busy`, `${place}:waiting`]

/** Keys of a place with its writers and their progress. */
export const consumerKeys = (place: string): string[] => [`${place}:consumer`, `${place}:fences`]

export const tableKeys = (place: string, { generation, indexes }: KnownTable): string[] =>
  ['rows', 'terms', 'ids', 'x', 'c', 'l', ...indexes.map((index) => `i:${index}`)].map(
    (suffix) => `${place}:${generation}:${suffix}`,
  )

/** The key with the last change of everything in a table. */
export const changesKey = (place: string, { generation }: KnownTable): string => `${place}:${generation}:c`

/** A checkpoint as canonical text; the empty text for none. */
export const checkpointText = (checkpoint: Checkpoint | undefined): string =>
  checkpoint === undefined ? '' : JSON.stringify(Object.entries(checkpoint).sort(([a], [b]) => (a < b ? -1 : 1)))

export const checkpointOf = (text: string): Checkpoint | undefined =>
  text === '' ? undefined : Object.fromEntries(JSON.parse(text) as [string, number][])

export const assertId = (id: string): void => {
  if (!isRowId(id)) throw new Error(`an id takes 1 to ${ID_BYTES_MAX} bytes`)
}
