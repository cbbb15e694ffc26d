// State of a form's submission: one at a time, with the outcome in words.
import { ApiError } from '../api/client.ts'

export class Attempt {
  isBusy = $state(false)
  problem = $state('')
  said = $state('')

  /** The text that `run` returns is shown when it is done. */
  async run(run: () => Promise<string | undefined>): Promise<void> {
    if (this.isBusy) return
    this.isBusy = true
    this.problem = ''
    this.said = ''
    try {
      this.said = (await run()) ?? ''
    } catch (error) {
      this.problem = wordsOf(error as Error)
    }
    this.isBusy = false
  }
}

/** Text of an error, including the problem of each value that it does not name itself. */
export const wordsOf = (error: Error): string => {
  const problems = error instanceof ApiError ? error.problems : []
  const others = problems.filter(({ message }) => !error.message.includes(message))
  return [error.message, ...others.map(({ path, message }) => `${path} ${message}`)].join(' ').trim()
}
