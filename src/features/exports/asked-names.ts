import type { UserCaller } from '../../kernel/caller.ts'
import { assertNoFaults } from '../../kernel/errors.ts'
import { assertShown } from '../../kernel/hidden-fields.ts'
import { pointerTo } from '../../kernel/json.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { bareName, DATA_TYPES, type DataTypeRow, hiddenOf } from '../data/views.ts'
import { RECORD_MEMBERS } from './columns.ts'
import type { ExportQuestion } from './events.ts'
import type { ExportSources } from './question.ts'

type Named = Pick<ExportQuestion, 'kind' | 'dataTypeId' | 'mapping'>

/** Checks that `fields` accepts each name of a mapping. @throws Failure invalid, forbidden with `fields` */
export const assertMapping = async (
  { tables, taskMembers }: Pick<ExportSources, 'tables' | 'taskMembers'>,
  caller: UserCaller,
  { kind, dataTypeId, mapping }: Named,
): Promise<void> => {
  const names = Object.keys(mapping)
  if (names.length === 0) return
  if (kind === 'data') return assertRecordNames(tables, caller, dataTypeId as string, names)
  const unknown = names.filter((name) => !taskMembers.includes(name.split('.')[0]))
  assertNoneUnknown(unknown, `names no field of tasks: expected ${taskMembers.join(', ')}, or a path below one`)
}

const assertRecordNames = async (
  tables: ExportSources['tables'],
  caller: UserCaller,
  dataTypeId: string,
  names: readonly string[],
): Promise<void> => {
  const { organizationId } = caller
  const type = await assertExists<DataTypeRow>(tables, DATA_TYPES, organizationId, dataTypeId, '/dataTypeId')
  const hidden = hiddenOf(caller, type)
  const known = type.fields.map(({ name }) => name)
  const isKnown = (name: string): boolean => RECORD_MEMBERS.includes(name) || known.includes(bareName(name))
  const shown = [...known.filter((name) => !hidden.has(name)), ...RECORD_MEMBERS]
  const unknown = names.filter((name) => !isKnown(name))
  assertNoneUnknown(unknown, `names no field of ${type.name}: expected ${shown.join(', ')}`)
  assertShown([...hidden], names.filter((name) => !RECORD_MEMBERS.includes(name)).map(bareName))
}

const assertNoneUnknown = (names: readonly string[], message: string): void =>
  assertNoFaults(names.map((name) => ({ path: `/mapping${pointerTo(name)}`, message })))
