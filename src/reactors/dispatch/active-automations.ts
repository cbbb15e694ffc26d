import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import { AUTOMATIONS, type AutomationRow } from '../../features/automations/views.ts'

const PAGE_ROWS = 500

/** The active automations, looked up once for all events that were read together. */
export class ActiveAutomations {
  private readonly tables: Pick<TableStore, 'find'>
  private readonly known = new Map<string, Promise<AutomationRow[]>>()
  private readonly areAny = new Map<string, boolean>()

  constructor(tables: Pick<TableStore, 'find'>) {
    this.tables = tables
  }

  /** Automations of an organization with this trigger (`triggerKey`). */
  of(organizationId: string, trigger: string): Promise<AutomationRow[]> {
    const key = `${organizationId}:${trigger}`
    let rows = this.known.get(key)
    if (rows === undefined) {
      this.known.set(key, (rows = this.find(organizationId, trigger)))
      // Failed lookups are repeated.
      rows.catch(() => this.known.delete(key))
    }
    return rows
  }

  /** Whether there are any, at once where that is known. */
  any(organizationId: string, trigger: string): boolean | Promise<boolean> {
    const key = `${organizationId}:${trigger}`
    const known = this.areAny.get(key)
    if (known !== undefined) return known
    const asked = this.of(organizationId, trigger)
    return asked.then(({ length }) => {
      // Lookups from before `forget` are out of date.
      if (this.known.get(key) === asked) this.areAny.set(key, length > 0)
      return length > 0
    })
  }

  /** Called before events that were read later. */
  forget(): void {
    this.known.clear()
    this.areAny.clear()
  }

  private async find(organizationId: string, trigger: string): Promise<AutomationRow[]> {
    const rows: AutomationRow[] = []
    const question = { where: { trigger }, limit: PAGE_ROWS }
    for await (const page of pagesOf<AutomationRow>(this.tables, AUTOMATIONS.name, organizationId, question))
      rows.push(...page.map(({ row }) => row))
    return rows
  }
}
