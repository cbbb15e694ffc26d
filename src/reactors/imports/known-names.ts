import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import { USERS_TABLE } from '../../features/identity/views.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import { nameKey } from '../../kit/formats/find-header.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'

const PAGE_ROWS = 500
const USERS_MAX = 10_000

interface Named extends Row {
  _id: string
  name: string
  hubId?: string
}

export interface NamedVehicle {
  id: string
  /** Absent for a vehicle that all hubs share. */
  hubId?: string
}

/** Hubs, teams, vehicles and people as files name them: by name or id, people by e-mail or id. */
export class KnownNames {
  private readonly tables: TableStore
  private readonly caller: UserCaller
  private readonly users = new RecentMap<string, string | null>(USERS_MAX)
  private hubs: Promise<Map<string, string>> | undefined
  private teams: Promise<Map<string, string>> | undefined
  private vehicles: Promise<Map<string, NamedVehicle[]>> | undefined

  constructor(tables: TableStore, caller: UserCaller) {
    this.tables = tables
    this.caller = caller
  }

  async hub(said: string): Promise<string | undefined> {
    this.hubs ??= this.named('hubs', ({ _id }) => _id)
    return (await this.hubs).get(nameKey(said))
  }

  async team(said: string): Promise<string | undefined> {
    this.teams ??= this.named('teams', ({ hubId }) => hubId)
    return (await this.teams).get(nameKey(said))
  }

  /** Several may share a name. */
  async vehiclesNamed(said: string): Promise<readonly NamedVehicle[]> {
    this.vehicles ??= this.vehiclesByName()
    return (await this.vehicles).get(nameKey(said)) ?? []
  }

  async user(said: string): Promise<string | undefined> {
    const key = normalizeKey(said)
    const known = this.users.get(key)
    if (known !== undefined) return known ?? undefined
    const id = key.includes('@') ? await this.userOfEmail(key) : await this.userOfId(key)
    this.users.set(key, id ?? null)
    return id
  }

  private async userOfEmail(emailKey: string): Promise<string | undefined> {
    const { rows } = await this.tables.find(USERS_TABLE, this.caller.organizationId, { where: { emailKey }, limit: 1 })
    return rows.at(0)?.id
  }

  private async userOfId(id: string): Promise<string | undefined> {
    return (await this.tables.get(USERS_TABLE, this.caller.organizationId, id)) && id
  }

  private async named(table: string, hubOf: (row: Named) => string | undefined): Promise<Map<string, string>> {
    const names = new Map<string, string>()
    for await (const { id, name } of this.seen(table, hubOf)) {
      names.set(nameKey(name), id)
      names.set(id, id)
    }
    return names
  }

  private async vehiclesByName(): Promise<Map<string, NamedVehicle[]>> {
    const names = new Map<string, NamedVehicle[]>()
    for await (const { id, name, hubId } of this.seen('vehicles', (row) => row.hubId)) {
      const one = { id, ...(hubId !== undefined && { hubId }) }
      names.set(nameKey(name), [...(names.get(nameKey(name)) ?? []), one])
      names.set(id, [one])
    }
    return names
  }

  private async *seen(table: string, hubOf: (row: Named) => string | undefined) {
    const question = { limit: PAGE_ROWS }
    for await (const page of pagesOf<Named>(this.tables, table, this.caller.organizationId, question))
      for (const { id, row } of page) {
        const hubId = hubOf(row)
        if (seesHubs(this.caller, hubId === undefined ? [] : [hubId])) yield { id, name: row.name, hubId }
      }
  }
}
