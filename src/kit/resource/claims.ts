import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { CommandContext } from '../commands/handle-command.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { ResourceState } from './rows.ts'
import { claimValue, confirmClaim, releaseClaim, type UniqueClaim, uniqueClaim } from '../commands/unique-claim.ts'

/** Whose value a write takes, and which one it leaves. */
export interface Claims {
  next?: UniqueClaim
  last?: UniqueClaim
}

export interface Claimant {
  organizationId: string
  id: string
  now: number
  context: CommandContext
}

/** Keeps the unique field of a resource unique: claim, write, confirm, release what is no longer used. */
export class ResourceClaims {
  private readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  private readonly load: (id: string) => Promise<ResourceState>

  constructor(
    declaration: ResourceDeclaration,
    services: ResourceServices,
    load: (id: string) => Promise<ResourceState>,
  ) {
    this.declaration = declaration
    this.services = services
    this.load = load
  }

  /** @throws Failure key_in_use */
  async claim(
    { organizationId, id, now, context }: Claimant,
    values: JsonObject,
    before: JsonObject | undefined,
  ): Promise<Claims> {
    const next = this.claimOf(organizationId, values)
    const last = before === undefined ? undefined : this.claimOf(organizationId, before)
    if (next?.stream === last?.stream) return {}
    if (next !== undefined)
      await claimValue(this.services.log, next, id, now, context, (owner) => this.holds(owner, next))
    return { next, last }
  }

  /** After the write. `undo` takes the write back when somebody else has the value by now. */
  async settle({ id, context }: Claimant, { next, last }: Claims, undo: () => Promise<unknown>): Promise<void> {
    const { log } = this.services
    if (next !== undefined) {
      try {
        await confirmClaim(log, next, id, context)
      } catch (error) {
        if (error instanceof Failure && error.code === 'key_in_use') await undo()
        throw error
      }
    }
    if (last !== undefined) await releaseClaim(log, last, id, context)
  }

  async release({ organizationId, id, context }: Claimant, values: JsonObject): Promise<void> {
    const claim = this.claimOf(organizationId, values)
    if (claim !== undefined) await releaseClaim(this.services.log, claim, id, context)
  }

  private claimOf(organizationId: string, values: JsonObject): UniqueClaim | undefined {
    const { noun, unique } = this.declaration
    const value = unique === undefined ? undefined : values[unique]
    if (unique === undefined || value === undefined) return undefined
    return uniqueClaim(this.services.keyring, noun, unique, organizationId, String(value))
  }

  private async holds(owner: string, claim: UniqueClaim): Promise<boolean> {
    const state = await this.load(owner)
    return state.status === 'live' && this.claimOf(state.organizationId, state.values)?.stream === claim.stream
  }
}
