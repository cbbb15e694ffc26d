import { type TableStore, tablesWith } from '../../engines/table-store.ts'
import type { Row } from '../../kernel/table.ts'

/**
 * Asks once for all simultaneous callers with the same question. It is sent in a microtask of its own, after all of
 * them have asked: nobody gets an answer older than their question, and nothing is kept.
 */
export class AskOnce<Answer> {
  private readonly waiting = new Map<string, Promise<Answer>>()

  ask(key: string, find: () => Promise<Answer>): Promise<Answer> {
    const known = this.waiting.get(key)
    if (known !== undefined) return known
    const answer = Promise.resolve().then(() => {
      this.waiting.delete(key)
      return find()
    })
    this.waiting.set(key, answer)
    return answer
  }
}

/**
 * The same tables, with simultaneous reads of the same row shared: nobody may change it. All views of one store share
 * with each other.
 */
export const sharedReads = (tables: TableStore): TableStore => {
  const known = ofStores.get(tables) ?? sharing(tables)
  ofStores.set(tables, known)
  return known
}

const ofStores = new WeakMap<TableStore, TableStore>()

const sharing = (tables: TableStore): TableStore => {
  const once = new AskOnce<Row | undefined>()
  const get = <R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> =>
    once.ask(`${table}:${scope}:${id}`, () => tables.get(table, scope, id)) as Promise<R | undefined>
  const getMany = async <R extends Row>(table: string, scope: string, ids: readonly string[]) =>
    ids.length === 1 ? [await get<R>(table, scope, ids[0])] : tables.getMany<R>(table, scope, ids)
  return tablesWith(tables, { get, getMany })
}
