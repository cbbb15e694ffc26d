import type { JsonObject } from '../../kernel/json.ts'
import { eventTypes, type ResourceData } from '../commands/declared-event.ts'
import { appendFacts } from '../commands/handle-command.ts'
import {
  ClaimTaker,
  normalizeKey,
  type ClaimContext,
  type ClaimOwners,
  type UniqueClaim,
  uniqueClaim,
} from '../commands/unique-claim.ts'
import type { ResourceDeclaration, ResourceServices, UniqueValue } from './declaration.ts'
import type { ResourceState } from './decider.ts'

/** Takes the value that a write at `version` gives the unique field. @throws Failure key_in_use, conflict */
export type TakeUnique = (values: JsonObject, before: JsonObject | undefined, version: number) => Promise<void>

/** Keeps a resource's unique field unique: a value is taken before its write; the record tells whether it has it. */
export class ResourceClaims implements ClaimOwners {
  private readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  private readonly load: (id: string) => Promise<{ state: ResourceState; version: number }>

  constructor(
    declaration: ResourceDeclaration,
    services: ResourceServices,
    load: (id: string) => Promise<{ state: ResourceState; version: number }>,
  ) {
    this.declaration = declaration
    this.services = services
    this.load = load
  }

  /** For one command, which may try several times. */
  takerFor(organizationId: string, id: string, context: ClaimContext): TakeUnique {
    const taker = new ClaimTaker(this.services.log, id, this, context)
    return async (values, before, version) => {
      const held = before === undefined ? [] : this.uniqueIn(before)
      for (const one of this.uniqueIn(values))
        if (!held.some((other) => isSame(one, other))) await taker.take(this.claimOf(organizationId, one), version)
    }
  }

  async ask(owner: string, claim: UniqueClaim): Promise<{ holds: boolean; version: number }> {
    const { state, version } = await this.load(owner)
    const holds =
      state.status === 'live' &&
      this.uniqueIn(state.values).some((one) => this.claimOf(state.organizationId, one).stream === claim.stream)
    return { holds, version }
  }

  /** A live record is written as it is, so that its row keeps the version of its stream. */
  async fence(owner: string, version: number, { ids, metadata }: ClaimContext): Promise<boolean> {
    const { noun } = this.declaration
    const loaded = await this.load(owner)
    if (loaded.version !== version) return false
    const { organizationId, values, sealed, createdAt, updatedAt } = loaded.state
    const unchanged: ResourceData = { organizationId, values, sealed, createdAt, at: updatedAt }
    const fact =
      loaded.state.status === 'live'
        ? { type: eventTypes(noun).changed, data: unchanged }
        : { type: `${noun}Fenced`, data: {} }
    const wrote = await appendFacts(this.services.log, `${noun}-${owner}`, [fact], [ids.next()], version, metadata)
    return wrote !== undefined
  }

  private uniqueIn(values: JsonObject): UniqueValue[] {
    const { unique = {} } = this.declaration
    const { field } = unique
    const value = field === undefined ? undefined : values[field]
    const own = field === undefined || value === undefined ? [] : [{ key: field, value: String(value), field }]
    return [...own, ...(unique.values?.(values) ?? [])]
  }

  private claimOf(organizationId: string, { key, value, field }: UniqueValue): UniqueClaim {
    return uniqueClaim(this.services.keyring, this.declaration.noun, key, organizationId, value, field)
  }
}

/** Whether both are the same claim; only taken claims are hashed. */
const isSame = (one: UniqueValue, other: UniqueValue): boolean =>
  one.key === other.key && normalizeKey(one.value) === normalizeKey(other.value)
