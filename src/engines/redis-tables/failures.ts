import { ErrorReply } from 'redis'
import { Failure } from '../../kernel/errors.ts'

export const down = (cause?: unknown): Failure =>
  new Failure('engine_down', { message: 'The tables do not answer; try again later.', retryAfterSeconds: 1, cause })

/** Errors of a server that cannot work now, or of a killed function; its other errors are faults of the program. */
const PASSING =
  /killed by user|^(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|OOM|MISCONF|BUSY|NOAUTH|NOPERM|WRONGPASS|NOREPLICAS|LOST)/

/** The failure of a question to the servers, for the caller. */
export const failureOf = (error: unknown): unknown => {
  if (error instanceof Failure) return error
  if (error instanceof ErrorReply && !PASSING.test(error.message)) return error
  if (/queue is full/i.test(String(error)))
    return new Failure('overloaded', { message: 'Too many questions wait for the tables.', retryAfterSeconds: 1 })
  return down(error)
}
