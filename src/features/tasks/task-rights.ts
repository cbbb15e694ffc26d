import { isDeepStrictEqual } from 'node:util'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { MoveRefused } from './moves.ts'
import { isOver, type TaskValues } from './views.ts'

/** @throws Failure forbidden */
export const assertDispatches = ({ caller }: WriteOrigin): void => {
  if (caller !== undefined && !caller.permissions.has('dispatch/task'))
    throw new Failure('forbidden', { message: 'This needs the permission dispatch/task.' })
}

/** Whoever does not dispatch fills in components, while the task is not over. */
export const assertMayChange = (caller: UserCaller | undefined, before: TaskValues, next: TaskValues): void => {
  if (caller === undefined || caller.permissions.has('dispatch/task')) return
  const { components: _one, ...others } = before
  const { components: _other, ...nextOthers } = next
  if (!isDeepStrictEqual(others, nextOthers))
    throw new Failure('forbidden', { message: 'Without the permission dispatch/task you may change components alone.' })
  assertMayFill(caller, before)
}

/** @throws MoveRefused */
export const assertMayFill = (caller: UserCaller | undefined, before: TaskValues): void => {
  const dispatches = caller === undefined || caller.permissions.has('dispatch/task')
  if (!dispatches && isOver(before)) throw new MoveRefused('finish', before.state)
}
