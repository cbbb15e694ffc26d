import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'

/** The data of `<noun>Created`, `<noun>Changed` and `<noun>Deleted`: the whole writable state, times in RFC 3339. */
export interface ResourceData {
  organizationId: string
  values: JsonObject
  /** Values of write-only fields, encrypted. */
  sealed?: { [field: string]: string }
  createdAt: string
  /** When the change was asked for. */
  at: string
}

/** The row of a resource: made of its events alone. */
export const rowOf = (
  id: string,
  version: number,
  data: Pick<ResourceData, 'organizationId' | 'values' | 'createdAt'> & { updatedAt: string },
): Row => ({
  ...data.values,
  _id: id,
  organizationId: data.organizationId,
  version,
  createdAt: data.createdAt,
  updatedAt: data.updatedAt,
})

/** What stands after the category in the name of a stream. */
export const idOfStream = (stream: string): string => stream.slice(stream.indexOf('-') + 1)

/** Types of the events of a declared resource. */
export const eventTypes = (noun: string): { created: string; changed: string; deleted: string } => ({
  created: `${noun}Created`,
  changed: `${noun}Changed`,
  deleted: `${noun}Deleted`,
})
