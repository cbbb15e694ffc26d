import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import { eventTypes, idOfStream, type ResourceData } from '../commands/declared-event.ts'
import type { RowSource } from './rows.ts'

/**
 * Keeps, beside the rows of a resource, those of its waiting records: of all organizations in one place. `waiting`
 * answers the members of such a row beside `organizationId`; undefined for a record that does not wait.
 */
export const dueRows =
  (noun: string, table: TableDeclaration, waiting: (values: JsonObject) => object | undefined) =>
  (plain: RowSource): RowSource => {
    const types = eventTypes(noun)
    return {
      ...plain,
      tables: [...plain.tables, table],
      apply: async (event, rows) => {
        await plain.apply(event, rows)
        if (!Object.values(types).includes(event.type)) return
        const { organizationId, values } = decodeJson<ResourceData>(event.data)
        const id = idOfStream(event.stream)
        const due = event.type === types.deleted ? undefined : waiting(values)
        if (due === undefined) return rows.delete(table.name, NO_ORGANIZATION, id)
        rows.put(table.name, NO_ORGANIZATION, id, { organizationId, ...due })
      },
    }
  }
