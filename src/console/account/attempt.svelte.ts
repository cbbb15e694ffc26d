// One thing at a time that a form does: busy meanwhile, and what came of it in words.
import { ApiError } from '../api/client.ts'

export class Attempt {
  isBusy = $state(false)
  problem = $state('')
  said = $state('')

  /** What `run` answers is said when it is done. */
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

/** What went wrong, with what is wrong about each value. */
export const wordsOf = (error: Error): string => {
  const details = error instanceof ApiError ? error.problems.map(({ message }) => message).join(' ') : ''
  return `${error.message} ${details}`.trim()
}
