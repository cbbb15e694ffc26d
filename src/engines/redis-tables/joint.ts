/**
 * Asks once for all simultaneous callers: those that come during a question share the next one, which begins after they
 * came; where the one under way fails, they fail with it, instead of waiting for one deadline after the other. An
 * answer that is not frozen goes to one caller only; the others ask for themselves.
 */
export class Joint<Answer> {
  private readonly waiting = new Map<string, Promise<Answer>>()
  private readonly running = new Map<string, Promise<unknown>>()

  async ask(name: string, question: () => Promise<Answer>): Promise<Answer> {
    const shared = this.waiting.get(name)
    if (shared === undefined) return this.next(name, question)
    const answer = await shared
    return Object.isFrozen(answer) ? answer : question()
  }

  private next(name: string, question: () => Promise<Answer>): Promise<Answer> {
    const answer = this.asked(name, question)
    this.waiting.set(name, answer)
    return answer
  }

  private async asked(name: string, question: () => Promise<Answer>): Promise<Answer> {
    try {
      await this.running.get(name)
    } finally {
      this.waiting.delete(name)
    }
    const asked = question()
    this.running.set(name, asked)
    try {
      return await asked
    } finally {
      if (this.running.get(name) === asked) this.running.delete(name)
    }
  }
}
