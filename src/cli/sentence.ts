import { Failure } from '../kernel/errors.ts'

/** The error in one line. "Something went wrong" does not help a person at a terminal, so its cause is shown. */
export const sentenceOf = (error: unknown): string => {
  if (error instanceof Failure && error.code === 'internal' && error.cause !== undefined) return sentenceOf(error.cause)
  // None of several addresses could be reached.
  if (error instanceof AggregateError && error.message === '') return sentenceOf(error.errors[0])
  const message = error instanceof Error ? error.message : String(error)
  const lines = message.split('\n').map((line) => line.trim())
  return lines.find((line) => line !== '') ?? String(error)
}
