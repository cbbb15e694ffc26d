import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import { appendFacts, handleCommand, type CommandContext } from '../../kit/commands/handle-command.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import {
  ClaimTaker,
  type ClaimContext,
  claimOwner,
  type ClaimOwners,
  normalizeKey,
  uniqueClaim,
  type UniqueClaim,
} from '../../kit/commands/unique-claim.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { IDENTITY } from './events.ts'
import { identity } from './identity.ts'
import type { IdentityCommand, IdentityState } from './identity-state.ts'

export interface Person {
  identityId: string
  state: IdentityState
}

/** Identities, read from their own streams: a login never waits for a read model. Their e-mails are unique. */
export class People implements ClaimOwners {
  private readonly services: Pick<Services, 'log' | 'keyring'>
  /** Claim of the first person to sign up, permanent. */
  private readonly first: UniqueClaim

  constructor(services: Pick<Services, 'log' | 'keyring'>) {
    this.services = services
    this.first = uniqueClaim(services.keyring, 'installation', 'first', '', 'signup')
  }

  /** E-mails compare without case. */
  async findByEmail(email: string): Promise<Person | undefined> {
    const owner = await claimOwner(this.services.log, this.claimOf(email))
    if (owner === undefined) return undefined
    const person = await this.load(owner)
    // A claim may name an identity that does not exist yet, or never will.
    return person !== undefined && normalizeKey(person.state.email) === normalizeKey(email) ? person : undefined
  }

  async load(identityId: string): Promise<Person | undefined> {
    const { state } = await loadState(this.services.log, streamOf(identityId), identity)
    return state.exists ? { identityId, state } : undefined
  }

  /** @throws Failure not_found, key_in_use if the e-mail is taken. */
  async command(identityId: string, command: IdentityCommand, context: CommandContext): Promise<Wrote | undefined> {
    const taker = new ClaimTaker(this.services.log, identityId, this, context)
    return this.handle(identityId, command, context, taker)
  }

  /** Whether anybody has signed up before, even if deleted since. */
  async hasFirst(): Promise<boolean> {
    const owner = await claimOwner(this.services.log, this.first)
    return owner !== undefined && (await this.ask(owner, this.first)).holds
  }

  /**
   * Creates the identity of a sign-up, and claims to be the first; with `firstOnly` nobody else may.
   * @throws Failure key_in_use if the e-mail is taken, not_available for anybody but the first.
   */
  async signUp(
    identityId: string,
    command: Extract<IdentityCommand, { type: 'create' }>,
    context: CommandContext,
    firstOnly: boolean,
  ): Promise<Wrote | undefined> {
    const taker = new ClaimTaker(this.services.log, identityId, this, context)
    const takeFirst = async (version: number): Promise<void> => {
      try {
        await taker.take(this.first, version)
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'key_in_use') throw error
        if (firstOnly) throw signupClosed()
      }
    }
    return this.handle(identityId, command, context, taker, takeFirst)
  }

  async ask(owner: string, claim: UniqueClaim): Promise<{ holds: boolean; version: number }> {
    const stream = streamOf(owner)
    if (claim.stream === this.first.stream) {
      const { state: holds, version } = await loadState(this.services.log, stream, everCreated)
      return { holds, version }
    }
    const { state, version } = await loadState(this.services.log, stream, identity)
    return { holds: state.exists && this.claimOf(state.email).stream === claim.stream, version }
  }

  async fence(owner: string, version: number, { ids, metadata }: ClaimContext): Promise<boolean> {
    const fact = { type: IDENTITY.fenced, data: {} }
    const wrote = await appendFacts(this.services.log, streamOf(owner), [fact], [ids.next()], version, metadata)
    return wrote !== undefined
  }

  private async handle(
    identityId: string,
    command: IdentityCommand,
    context: CommandContext,
    taker: ClaimTaker,
    takeFurther?: (version: number) => Promise<void>,
  ): Promise<Wrote | undefined> {
    const { wrote } = await handleCommand(
      this.services.log,
      streamOf(identityId),
      identity,
      command,
      context,
      async (after, before, version) => {
        await takeFurther?.(version)
        const claim = this.claimOf(after.email)
        const isKept = before.exists && this.claimOf(before.email).stream === claim.stream
        if (after.exists && !isKept) await taker.take(claim, version)
      },
    )
    return wrote
  }

  private claimOf(email: string): UniqueClaim {
    return uniqueClaim(this.services.keyring, 'identity', 'email', '', email)
  }
}

export const signupClosed = (): Failure =>
  new Failure('not_available', {
    status: 403,
    message: 'Signing up is closed on this server; ask for an invitation.',
  })

/** Whether the identity ever existed, deleted or not. */
const everCreated: Decider<boolean, never> = {
  initial: false,
  decide: () => [],
  evolve: (was, fact) => was || fact.type === IDENTITY.created,
}

const streamOf = (identityId: string): string => `identity-${identityId}`
