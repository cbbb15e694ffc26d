import type { TableStore } from '../../engines/table-store.ts'
import type { Json } from '../../kernel/json.ts'
import { bareName, DATA_TYPES, type DataTypeRow, fieldNamed } from '../data/views.ts'
import { RECORD_MEMBERS } from './columns.ts'

const VALUES = 'values.'
/** A filter by a field, whose name has no point, and its bound. */
const PARAMETER = /^values\.([^.]+)(\.from|\.to)?$/

/** What an export names of a data type. */
interface Named {
  dataTypeId?: Json
  fields?: Json
  mapping?: Json
  filter?: Json
}

/** The settings of an export with the names that fields have now: one that was renamed since is followed. */
export const withCurrentNames = async <S extends Named>(
  tables: Pick<TableStore, 'get'>,
  organizationId: string,
  settings: S,
): Promise<S> => {
  const { dataTypeId, fields, mapping, filter } = settings
  if (typeof dataTypeId !== 'string') return settings
  const type = await tables.get<DataTypeRow>(DATA_TYPES, organizationId, dataTypeId.toLowerCase())
  if (type === undefined || type.fields.every(({ formerNames }) => formerNames === undefined)) return settings
  return {
    ...settings,
    ...(fields !== undefined && { fields: currentOf(type, fields as string[], nameNow) }),
    ...(mapping !== undefined && { mapping: withKeys(type, mapping as object, nameNow) }),
    ...(filter !== undefined && { filter: withKeys(type, filter as object, parameterNow) }),
  }
}

type Naming = (type: Pick<DataTypeRow, 'fields'>, said: string) => string

const withKeys = (type: Pick<DataTypeRow, 'fields'>, named: object, naming: Naming): { [name: string]: Json } => {
  const names = currentOf(type, Object.keys(named), naming)
  return Object.fromEntries(Object.values(named).map((value, i) => [names[i], value as Json]))
}

/** A name stays where another one of the list names the same field: that one meant it. */
const currentOf = (type: Pick<DataTypeRow, 'fields'>, said: readonly string[], naming: Naming): string[] => {
  const taken = new Set(said)
  return said.map((name) => {
    const now = naming(type, name)
    if (now === name || taken.has(now)) return name
    taken.add(now)
    return now
  })
}

/** Of columns and their titles: `price` or `values.price`. */
const nameNow: Naming = ({ fields }, said) => {
  if (RECORD_MEMBERS.includes(said)) return said
  const bare = bareName(said)
  const name = fieldNamed(fields, bare)?.name ?? bare
  if (name === bare) return said
  return said.startsWith(VALUES) || RECORD_MEMBERS.includes(name) ? VALUES + name : name
}

/** Of filters: `values.price`, `values.price.from`. */
const parameterNow: Naming = ({ fields }, said) => {
  const [, named, bound = ''] = PARAMETER.exec(said) ?? []
  if (named === undefined) return said
  const bare = bareName(named)
  const name = fieldNamed(fields, bare)?.name ?? bare
  return name === bare ? said : VALUES + name + bound
}
