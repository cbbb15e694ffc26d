import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { componentsOf, type FlowContent } from '../flows/views.ts'
import { actorOf, type TaskValues } from './views.ts'

export const userIdOf = ({ metadata }: WriteOrigin): { userId?: string } => {
  const { type, id } = actorOf(metadata.actor)
  return type === 'user' ? { userId: id } : {}
}

/** `at` of a body, ms since the epoch. */
export const timeIn = ({ at }: JsonObject): number | undefined =>
  at === undefined || at === null ? undefined : new Date(at as string | number).getTime()

export const assertWindow = (window: Json | undefined): void => {
  if (window === undefined || window === null) return
  const { from, to } = window as { from: string; to: string }
  if (new Date(from).getTime() > new Date(to).getTime()) throw invalid('/window/to', 'must not be before from')
}

/** Components that a PUT may leave out, which empties them. */
export const writableIn = (flow: FlowContent): string[] =>
  componentsOf(flow).flatMap(({ id, readOnly }) => (readOnly === true ? [] : [id]))

export const without = (values: TaskValues, name: 'teamId'): TaskValues => {
  if (values[name] != null) return values
  const { [name]: _gone, ...others } = values
  return others
}
