/** Jobs that have not ended. Organizations take turns, and one job of an organization runs at a time. */
export class JobTurns {
  /** Waiting ids by organization, the one whose turn is next in front. */
  private readonly waiting = new Map<string, Set<string>>()
  /** Organizations of all jobs that wait or run, by id. */
  private readonly organizations = new Map<string, string>()
  private readonly busy = new Set<string>()

  add(organizationId: string, id: string): void {
    if (this.organizations.has(id)) return
    this.organizations.set(id, organizationId)
    this.waiting.set(organizationId, (this.waiting.get(organizationId) ?? new Set()).add(id))
  }

  /** Called when it has ended, whether it ran or waited. */
  remove(id: string): void {
    const organizationId = this.organizations.get(id)
    if (organizationId === undefined) return
    this.organizations.delete(id)
    const ids = this.waiting.get(organizationId)
    if (ids?.delete(id) === true) {
      if (ids.size === 0) this.waiting.delete(organizationId)
      return
    }
    this.busy.delete(organizationId)
    if (ids === undefined) return
    this.waiting.delete(organizationId)
    this.waiting.set(organizationId, ids) // it had its turn: behind all others
  }

  /** The job to run next; undefined where none may. */
  next(): string | undefined {
    for (const [organizationId, ids] of this.waiting) {
      if (this.busy.has(organizationId)) continue
      const [id] = ids
      ids.delete(id)
      if (ids.size === 0) this.waiting.delete(organizationId)
      this.busy.add(organizationId)
      return id
    }
    return undefined
  }
}
