import { Failure } from '../kernel/errors.ts'

/** What went wrong, in one line. "Something went wrong" helps nobody who reads it in a terminal: what caused it does. */
export const sentenceOf = (error: unknown): string => {
  if (error instanceof Failure && error.code === 'internal' && error.cause !== undefined) return sentenceOf(error.cause)
  // None of several addresses could be reached.
  if (error instanceof AggregateError && error.message === '') return sentenceOf(error.errors[0])
  const message = error instanceof Error ? error.message : String(error)
  const lines = message.split('\n').map((line) => line.trim())
  return lines.find((line) => line !== '') ?? String(error)
}
