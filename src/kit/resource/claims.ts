import type { JsonObject } from '../../kernel/json.ts'
import { eventTypes, type ResourceData } from '../commands/declared-event.ts'
import { appendFacts } from '../commands/handle-command.ts'
import {
  ClaimTaker,
  type ClaimContext,
  type ClaimOwners,
  type UniqueClaim,
  uniqueClaim,
} from '../commands/unique-claim.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { ResourceState } from './decider.ts'

/** Takes the value that a write at `version` gives the unique field. @throws Failure key_in_use, conflict */
export type TakeUnique = (values: JsonObject, before: JsonObject | undefined, version: number) => Promise<void>

/** Keeps the unique field of a resource unique: a value is taken before it is written, and the record itself says whether it has it. */
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
      const held = before === undefined ? [] : this.claimsOf(organizationId, before)
      for (const claim of this.claimsOf(organizationId, values))
        if (!held.some(({ stream }) => stream === claim.stream)) await taker.take(claim, version)
    }
  }

  async ask(owner: string, claim: UniqueClaim): Promise<{ holds: boolean; version: number }> {
    const { state, version } = await this.load(owner)
    const holds =
      state.status === 'live' &&
      this.claimsOf(state.organizationId, state.values).some(({ stream }) => stream === claim.stream)
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

  private claimsOf(organizationId: string, values: JsonObject): UniqueClaim[] {
    const { noun, unique, uniques } = this.declaration
    const value = unique === undefined ? undefined : values[unique]
    const own =
      unique === undefined || value === undefined ? [] : [{ key: unique, value: String(value), field: unique }]
    return [...own, ...(uniques?.(values) ?? [])].map((one) =>
      uniqueClaim(this.services.keyring, noun, one.key, organizationId, one.value, one.field),
    )
  }
}
