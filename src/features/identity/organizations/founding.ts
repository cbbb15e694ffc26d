import { Failure } from '../../../kernel/errors.ts'
import type { Fact } from '../../../kernel/event.ts'
import { IDENTITY, type OrganizationFounded } from '../events.ts'

export interface FoundingState {
  /** Existing organizations that the person created. Those from before counting began are not included. */
  founded: readonly string[]
}

export type FoundingCommand =
  | { type: 'found'; organizationId: string; organizationsMax: number; at: string }
  | { type: 'endFounding'; organizationId: string; at: string }

/** @throws Failure quota */
export const decideFounding = (command: FoundingCommand, state: FoundingState): Fact[] => {
  const { organizationId, at } = command
  const isFounded = state.founded.includes(organizationId)
  const data = { organizationId, at } satisfies OrganizationFounded
  if (command.type === 'endFounding') return isFounded ? [{ type: IDENTITY.foundingEnded, data }] : []
  if (isFounded) return []
  assertMayFound(state, command.organizationsMax)
  return [{ type: IDENTITY.organizationFounded, data }]
}

/** @throws Failure quota */
export const assertMayFound = ({ founded: { length: used } }: FoundingState, limit: number): void => {
  if (used < limit) return
  throw new Failure('quota', {
    message: `You have created ${used} organizations; this server allows ${limit} for each person.`,
    extra: { limit, used },
  })
}

export const evolveFounding = <State extends FoundingState>(state: State, fact: Fact): State => {
  if (fact.type !== IDENTITY.organizationFounded && fact.type !== IDENTITY.foundingEnded) return state
  const { organizationId } = fact.data as OrganizationFounded
  const others = state.founded.filter((one) => one !== organizationId)
  return { ...state, founded: fact.type === IDENTITY.organizationFounded ? [...others, organizationId] : others }
}
