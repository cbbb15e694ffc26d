import { Failure } from '../../kernel/errors.ts'
import { handleCommand, loadState, type CommandContext } from '../../kit/commands/handle-command.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import {
  claimOwner,
  claimValue,
  confirmClaim,
  normalizeKey,
  releaseClaim,
  uniqueClaim,
  type UniqueClaim,
} from '../../kit/commands/unique-claim.ts'
import { identity, type IdentityCommand, type IdentityState } from './identity.ts'

export interface Person {
  identityId: string
  state: IdentityState
}

/** Identities, read from their own streams: a login never waits for a read model. */
export class People {
  private readonly services: Pick<Services, 'log' | 'keyring'>

  constructor(services: Pick<Services, 'log' | 'keyring'>) {
    this.services = services
  }

  /** E-mails compare without case. */
  async findByEmail(email: string): Promise<Person | undefined> {
    const { owner } = await claimOwner(this.services.log, this.claimOf(email))
    if (owner === undefined) return undefined
    const person = await this.load(owner)
    // Between claim and creation the claim names an identity that is not there yet.
    return person !== undefined && normalizeKey(person.state.email) === normalizeKey(email) ? person : undefined
  }

  async load(identityId: string): Promise<Person | undefined> {
    const { state } = await loadState(this.services.log, streamOf(identityId), identity)
    return state.exists ? { identityId, state } : undefined
  }

  /** @throws Failure not_found, key_in_use */
  async command(identityId: string, command: IdentityCommand, context: CommandContext): Promise<Wrote | undefined> {
    return (await handleCommand(this.services.log, streamOf(identityId), identity, command, context)).wrote
  }

  /**
   * Runs `write` under a claim on the e-mail, and confirms the claim. What `write` made is undone when it fails, or
   * when somebody else took the claim because `write` lasted too long.
   * @throws Failure key_in_use when somebody has the e-mail.
   */
  async withEmail<Result>(
    email: string,
    identityId: string,
    now: number,
    context: CommandContext,
    write: () => Promise<Result>,
    undo: () => Promise<void>,
  ): Promise<Result> {
    const { log } = this.services
    const claim = this.claimOf(email)
    await claimValue(log, claim, identityId, now, context, (owner) => this.holds(owner, claim))
    let result: Result
    try {
      result = await write()
    } catch (error) {
      if (error instanceof Failure && error.status < 500) await releaseClaim(log, claim, identityId, context)
      throw error
    }
    try {
      await confirmClaim(log, claim, identityId, context)
    } catch (error) {
      if (error instanceof Failure && error.code === 'key_in_use') await undo()
      throw error
    }
    return result
  }

  async releaseEmail(email: string, identityId: string, context: CommandContext): Promise<void> {
    await releaseClaim(this.services.log, this.claimOf(email), identityId, context)
  }

  private claimOf(email: string): UniqueClaim {
    return uniqueClaim(this.services.keyring, 'identity', 'email', '', email)
  }

  private async holds(identityId: string, claim: UniqueClaim): Promise<boolean> {
    const person = await this.load(identityId)
    return person !== undefined && this.claimOf(person.state.email).stream === claim.stream
  }
}

const streamOf = (identityId: string): string => `identity-${identityId}`
