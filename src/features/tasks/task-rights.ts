import { isDeepStrictEqual } from 'node:util'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { type TaskValues, withoutInternal } from './views.ts'

/** Whether the caller may change every task of their hubs; the service itself may. */
export const dispatches = (caller: UserCaller | undefined): boolean =>
  caller === undefined || caller.permissions.has('dispatch/task')

/** @throws Failure forbidden */
export const assertDispatches = ({ caller }: WriteOrigin): void => {
  if (!dispatches(caller)) throw new Failure('forbidden', { message: 'This needs the permission dispatch/task.' })
}

/** Users who do not dispatch only fill in components. @throws Failure forbidden */
export const assertMayChange = (caller: UserCaller | undefined, before: TaskValues, next: TaskValues): void => {
  if (dispatches(caller)) return
  const { components: _one, ...others } = withoutInternal(before)
  const { components: _other, ...nextOthers } = withoutInternal(next)
  if (!isDeepStrictEqual(others, nextOthers))
    throw new Failure('forbidden', { message: 'Without the permission dispatch/task you may change components alone.' })
}
