/**
 * Asks once for all who want the same at the same time: whoever comes while a question is under way shares the next one,
 * which begins after they came. An answer that is not frozen is given to one alone; the others ask for themselves.
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
    const answer = Promise.resolve(this.running.get(name)).then(() => {
      this.waiting.delete(name)
      const asked = question()
      const end = (): void => {
        if (this.running.get(name) === ended) this.running.delete(name)
      }
      const ended: Promise<void> = asked.then(end, end)
      this.running.set(name, ended)
      return asked
    })
    this.waiting.set(name, answer)
    return answer
  }
}
